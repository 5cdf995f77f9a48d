"""The Spark job of the demo: stock PySpark, no jar, nothing of faircopy's imported.

    python spark_job.py PLAIN_DIRECTORY CHECKPOINT_DIRECTORY

It joins two streams of plain Parquet on the flight, and counts each batch of joined flights. It runs until
its standard input ends and everything that was published is processed.
"""

from __future__ import annotations

import json
import select
import sys
import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

DEPARTURE = "flight_id INT, carrier STRING, dep_delay INT, attempt STRING"
ARRIVAL = "flight_id INT, arr_delay INT, attempt STRING"


def main(plain: str, checkpoint: str) -> None:
    """Join streams of the plain tables in `plain` until standard input has a line; print totals as JSON."""
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("flights")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    print(json.dumps({"spark": spark.version}), flush=True)

    def stream(table: str, schema: str) -> Any:
        path = f"{plain}/{table}"
        rows = spark.readStream.schema(spark.read.parquet(path).schema).parquet(path)
        return rows.select(f.from_json(f.col("value").cast("string"), schema).alias("row")).select("row.*")

    departures, arrivals = stream("departures", DEPARTURE), stream("arrivals", ARRIVAL)
    joined = departures.join(arrivals, ["flight_id", "attempt"])
    totals = {"joined": 0, "late": 0, "delay_minutes": 0}

    def count(batch: Any, _number: int) -> None:
        is_late = (f.col("arr_delay") > 15).cast("int")
        row = batch.agg(
            f.count("*").alias("n"), f.sum(is_late).alias("late"), f.sum("arr_delay").alias("delay")
        ).first()
        totals["joined"] += row["n"]
        totals["late"] += row["late"] or 0
        totals["delay_minutes"] += row["delay"] or 0
        print(json.dumps(totals), flush=True)

    query = joined.writeStream.option("checkpointLocation", checkpoint).foreachBatch(count).start()
    while not select.select([sys.stdin], [], [], 0)[0]:
        time.sleep(0.1)
    query.processAllAvailable()
    query.stop()
    print(json.dumps({"final": totals}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
