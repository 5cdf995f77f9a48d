"""The systems under test, with a common interface."""
