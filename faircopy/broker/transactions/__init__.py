"""The transaction coordinator: a pure table of transitions, and the shell that carries out what it decides."""
