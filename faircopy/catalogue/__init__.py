"""The catalogue: what all brokers of a set share. Topics, and what else is kept with them."""
