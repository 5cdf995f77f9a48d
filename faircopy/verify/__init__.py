"""Reading a data directory from outside: dumps of files, and a check of everything. Changes nothing."""
