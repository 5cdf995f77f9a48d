"""A small client of our own, for the command line: one connection, one request at a time."""
