"""Consumer groups: a pure membership machine, journals of offsets, and the shell that answers requests."""
