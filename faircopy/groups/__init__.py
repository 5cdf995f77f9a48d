"""Consumer groups: a pure machine of membership, the journals of their offsets, and the shell that answers requests."""
