"""The leader epoch that clients see."""

LEADER_EPOCH = 0  # replication, and with it changes of leader, is not there yet
