"""Connections: listeners, frames in and responses out, and limits over all of them."""
