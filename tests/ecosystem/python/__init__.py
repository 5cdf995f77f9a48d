"""Programs that tests run with the packages that a file here pins, not with those of the project."""
