"""Programs of Kafka's ecosystem, unmodified, against a broker with its defaults."""
