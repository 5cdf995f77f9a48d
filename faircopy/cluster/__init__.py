"""What the brokers of a cluster share: the cluster store, its backends, and the topics in it."""
