"""Plain Parquet tables of the visible log, written by a process of its own."""
