"""What the brokers of a cluster share: the cluster store and its backends, and the topics in it."""
