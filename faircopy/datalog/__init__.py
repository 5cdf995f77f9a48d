"""The visible log of a partition: Kafka v2 batches in segment files, sparse indexes, retention."""
