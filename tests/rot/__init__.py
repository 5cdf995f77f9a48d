"""Bytes that change on disk by themselves: each that matters is found, named, and served to nobody."""
