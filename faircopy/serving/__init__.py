"""From a frame to its handler and back: the code that the files of api/ share."""
