"""Reading a data directory from outside: dumps of its files, and a check of everything in it. Nothing is
changed."""
