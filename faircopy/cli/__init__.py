"""The command `faircopy`."""
