"""`format("faircopy")`: a source and a sink for PySpark (docs/SPARK.md)."""
