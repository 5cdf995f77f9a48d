"""From a frame to its handler and back: what the files of api/ share."""
