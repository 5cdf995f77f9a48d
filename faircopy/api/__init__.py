"""The handlers of the Kafka protocol's APIs: requests in, response bodies out."""
