"""`python -m tests.clients.errors`: make docs/ERRORS.md anew."""

from __future__ import annotations

from tests.clients.errors.page import PAGE, rendered

PAGE.write_text(rendered())
print(f"wrote {PAGE.name}: look at the difference")
