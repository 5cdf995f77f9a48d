"""What a broker hosts: topics and partitions, their checkpoints, retention, plain tables and snapshots."""
