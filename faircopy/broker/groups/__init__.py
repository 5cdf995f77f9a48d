"""Consumer groups: a pure machine of membership, and the shell that answers requests with it."""
