"""`python -m faircopy` is the command `faircopy`."""

from faircopy.cli.main import main

main()
