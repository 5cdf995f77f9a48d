"""`python -m demo`, which `faircopy demo` runs."""

from __future__ import annotations

from demo.show import demo
from faircopy.cli.main import run

if __name__ == "__main__":
    run(demo, "faircopy demo")
