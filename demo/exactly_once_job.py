"""The Spark job of `faircopy demo spark`: joins two topics, and writes the result to a third, exactly once.

    python -m demo.exactly_once_job BROKER CHECKPOINT_DIRECTORY ROWS_A_TRIGGER

It runs until it is ended, and prints a line of JSON for each micro-batch.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from demo.flights import ARRIVALS, DEPARTURES, JOINED

TASK_TRIES = 4
DEPARTURE = "flight_id INT, carrier STRING, dep_delay INT"
ARRIVAL = "flight_id INT, arr_delay INT"


def main(broker: str, checkpoint: str, rows_a_trigger: str) -> None:
    """Join departures and arrivals, and write what became of each flight."""
    spark = (
        SparkSession.builder.master(f"local[2,{TASK_TRIES}]")
        .appName("flights, exactly once")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    print(json.dumps({"spark": spark.version}), flush=True)

    def flights(topic: str, columns: str) -> DataFrame:
        rows = spark.readStream.format("faircopy").option("kafka.bootstrap.servers", broker)
        rows = rows.option("subscribe", topic).option("startingOffsets", "earliest")
        rows = rows.option("maxOffsetsPerTrigger", rows_a_trigger)
        loaded: DataFrame = rows.option("value.format", "json").option("value.schema", columns).load()
        return loaded.select(*(part.split()[0] for part in columns.split(", ")))

    joined = flights(DEPARTURES, DEPARTURE).join(flights(ARRIVALS, ARRIVAL), "flight_id")
    query = (
        joined.select(f.col("flight_id").cast("string").alias("key"), f.to_json(f.struct("*")).alias("value"))
        .writeStream.format("faircopy")
        .option("kafka.bootstrap.servers", broker)
        .option("topic", JOINED)
        .option("checkpointLocation", checkpoint)
        .start()
    )
    watch(query)


def register(spark: SparkSession) -> None:
    """Spark finds an installed faircopy by itself; one that is being developed has to be named."""
    from faircopy.spark.data_source import FaircopyDataSource

    spark.dataSource.register(FaircopyDataSource)


def watch(query: Any) -> None:
    """Print what each micro-batch has read, until the query fails or this process is ended."""
    last = -1
    while query.isActive:
        for progress in query.recentProgress:
            if progress["batchId"] > last and progress["numInputRows"]:
                last = progress["batchId"]
                print(json.dumps({"batch": last, "rows": progress["numInputRows"]}), flush=True)
        time.sleep(0.2)
    error = query.exception()
    print(json.dumps({"failed": str(error)[:2000]}), flush=True)
    sys.exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
