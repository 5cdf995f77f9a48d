"""`python -m tests.compatibility`: make docs/COMPATIBILITY.md anew."""

from __future__ import annotations

from tests.compatibility.page import PAGE, rendered

PAGE.write_text(rendered())
print(f"wrote {PAGE.name}: look at the difference")
