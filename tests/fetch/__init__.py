"""What the tests need from outside: `python -m tests.fetch` brings it, and tests only find it."""
