"""The kinds of rows that Spark writes in the benchmark: keys and values, made from a number."""

from __future__ import annotations

from typing import NamedTuple


class RowKind(NamedTuple):
    """How a value is made, in SQL from the number `id`, and its size, about."""

    value: str
    bytes: int


KINDS = {
    "padded": RowKind("rpad(cast(id as string), 100, '.')", 100),
    "JSON": RowKind(
        "to_json(named_struct('id', id, 'customer', concat('customer-', id * 7919 % 100000), "
        "'amount', round(id * 31 % 100000 / 7, 2), 'currency', if(id % 3 = 0, 'EUR', 'USD'), "
        "'note', repeat('as agreed ', cast(id % 8 as int))))",
        130,
    ),
    "1 KiB": RowKind("rpad(sha2(cast(id as string), 512), 1024, sha2(cast(id + 1 as string), 512))", 1024),
}
KEY = "cast(id as string)"
