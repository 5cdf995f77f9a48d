"""What a broker hosts: its topics with their partitions, their checkpoints, retention, plain tables and snapshots."""
