"""Rivals of faircopy's commit protocol, each a variation on the broker's own parts.

They are for comparison on an empty directory, and keep none of faircopy's promises: their state in memory is
not recovered. In details that do not matter for the comparison they get the better option: clients wait at
the broker instead of having to try again, and a call replaces each message that a cluster would send over the
network.
"""
