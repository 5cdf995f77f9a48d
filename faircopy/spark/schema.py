"""The columns of rows that are read and written, as Spark's Kafka source and sink name them."""

from __future__ import annotations

import pyarrow as pa

HEADERS_TYPE = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)
