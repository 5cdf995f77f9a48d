"""One page with everything that a run measured, made from its result file alone."""

from bench.page.page import write_page

__all__ = ["write_page"]
