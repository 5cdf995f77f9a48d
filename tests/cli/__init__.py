"""The command line, and what is seen of a broker from outside its protocol: starts, signals, logs, files."""
