"""What the broker does for each API of the Kafka protocol: requests in, response bodies out."""
