"""The settings of a broker: one table of them, and the sources that they are read from."""
