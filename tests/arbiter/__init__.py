"""The arbiter: its backends and what is made of them."""
