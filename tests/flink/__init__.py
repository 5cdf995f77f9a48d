"""Apache Flink's KafkaSource and KafkaSink, exactly once, while the job and the broker are killed."""
