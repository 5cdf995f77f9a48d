"""Rivals of faircopy's commit protocol, each a variation on the broker's own parts.

They are for comparison on an empty directory, and keep none of faircopy's promises: what they hold in memory is not
recovered. In what the comparison does not need they are given the better choice: clients are not made to come back
where a wait on the broker does, and what a cluster would send over the network is a call.
"""
