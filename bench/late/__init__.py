"""Late requests: what a client gave up, and the network delivers in its next transaction."""
