"""The options of a read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from faircopy.spark.options import BadOption, Options
from faircopy.spark.source_columns import COLUMNS, CORRUPT, DROPMALFORMED, FAILFAST, PERMISSIVE
from faircopy.spark.subscription import Subscription, subscription_of

NAMES = (
    "bootstrap.servers", "client.id", "subscribe", "subscribePattern", "assign", "startingOffsets",
    "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsetsByTimestampStrategy", "endingOffsets",
    "endingTimestamp", "endingOffsetsByTimestamp", "failOnDataLoss", "includeHeaders", "maxOffsetsPerTrigger",
    "maxBytesPerTrigger", "minPartitions", "maxRecordsPerPartition", "value.format", "value.schema",
    "value.mode",
)  # fmt: skip
FORMATS = {"binary": False, "json": True}
MODES = {mode: mode for mode in (PERMISSIVE, FAILFAST, DROPMALFORMED)}


@dataclass(frozen=True)
class SourceOptions:
    """The options of a read."""

    servers: str
    client_id: str
    subscription: Subscription
    given: Options
    fails_on_loss: bool
    has_headers: bool
    rows_max: int | None
    bytes_max: int | None
    splits_min: int
    split_rows_max: int | None
    value_schema: str | None
    value_mode: str

    @classmethod
    def read(cls, given: Mapping[str, str]) -> SourceOptions:
        """Raises BadOption."""
        options = Options(given, NAMES)
        is_json = options.choice("value.format", FORMATS, False)
        if is_json != (options.text("value.schema") is not None):
            raise BadOption(
                "options 'value.format' json and 'value.schema' (columns, as in SQL) belong together"
            )
        return cls(
            options.required("bootstrap.servers", "HOST:PORT of a broker"),
            options.text("client.id", "faircopy-spark") or "",
            subscription_of(options),
            options,
            options.flag("failOnDataLoss", default=True),
            options.flag("includeHeaders", default=False),
            options.number("maxOffsetsPerTrigger", at_least=1),
            options.number("maxBytesPerTrigger", at_least=1),
            options.number("minPartitions", 1, at_least=1) or 1,
            options.number("maxRecordsPerPartition", at_least=1),
            options.text("value.schema"),
            options.choice("value.mode", MODES, PERMISSIVE),
        )

    @property
    def metadata(self) -> list[str]:
        """The columns of a row beside those of a decoded value."""
        return [
            name
            for name in COLUMNS
            if (name != "headers" or self.has_headers) and (name != "value" or self.value_schema is None)
        ]

    @property
    def schema(self) -> str:
        """The columns of rows, as in SQL: those of a decoded value first."""
        metadata = [f"`{name}` {COLUMNS[name]}" for name in self.metadata]
        if self.value_schema is None:
            return ", ".join(metadata)
        corrupt = [f"`{CORRUPT}` string"] if self.value_mode == PERMISSIVE else []
        return ", ".join([self.value_schema, *corrupt, *metadata])
