"""The cluster store: its backends and what is made of them."""
