"""Makes `format("faircopy")` known to Spark, which looks for modules whose names begin with `pyspark_`."""

from faircopy.spark.data_source import FaircopyDataSource as DefaultSource

__all__ = ["DefaultSource"]
