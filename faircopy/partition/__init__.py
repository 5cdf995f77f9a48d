"""One partition: what may be appended to its journal, and what becomes of it."""
