"""The arbiter: who leads. Sessions with a small store outside of the brokers, and its backends."""
