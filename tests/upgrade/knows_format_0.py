"""`faircopy`, if a format 0 had been released, and this version upgraded it: for the test of upgrades."""

from __future__ import annotations

from faircopy.cli.main import main
from faircopy.storage import data_directory

if __name__ == "__main__":
    data_directory.OLDEST_FORMAT = 0
    main()
