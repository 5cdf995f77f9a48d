"""Every target by its name. A target is a function that feeds one input to the product.

It swallows two kinds of errors: those by which the product says what is wrong with an input, and those that
its callers handle. It raises all others. What is read back is also compared with what was written, wherever
that is known.

A target's modules are imported when it is loaded: each runs in a process of its own, in 256 MiB of memory.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

Feed = Callable[[bytes], bool]
"""Whether the product takes the input. What it refuses is refused early, most times."""


class Target(NamedTuple):
    """One target: where its function is, what it feeds, and how long an input may be."""

    name: str
    place: str
    about: str
    bytes_max: int = 4096
    has_history: bool = False
    """Whether the inputs before one may matter; then `broker.history` has them as one input."""

    def load(self) -> Feed:
        """The function. Imports what it needs."""
        module, _, function = self.place.partition(":")
        feed: Feed = getattr(import_module(f"tests.fuzz.{module}"), function)
        return feed


TARGETS = {
    target.name: target
    for target in (
        Target("frames", "broker:feed_frames", "bytes of clients, to a broker that lives on", 8192, True),
        Target(
            "requests",
            "broker:feed_requests",
            "requests with odd values, to a broker that lives on",
            4096,
            True,
        ),
        Target(
            "request-decoders", "messages:feed_request", "bodies of each API and version, to their readers"
        ),
        Target("response-decoders", "messages:feed_response", "responses, to the client's readers"),
        Target("link-messages", "link_messages:feed_link", "what arrives on a link between brokers"),
        Target("record-batches", "batches:feed_batch", "one batch, as Produce and readers treat it"),
        Target(
            "decompression",
            "batches:feed_compressed",
            "records of each codec, with a bound on what comes out",
        ),
        Target("columns", "columns:feed_batches", "batches as the publisher reads them", 8192),
        Target("journal-files", "journal_files:feed_files", "segments with edits, to recovery", 1024),
        Target(
            "journal-entries",
            "journal_entries:feed_entries",
            "sound entries with odd fields, to the fold and the copy",
        ),
        Target(
            "metadata-entries",
            "metadata_entries:feed_metadata",
            "sound entries with odd fields, to the transactions",
        ),
        Target(
            "offsets-entries",
            "offsets_entries:feed_offsets",
            "sound entries with odd fields, to the groups' offsets",
        ),
        Target(
            "catalogue-entries",
            "catalogue_entries:feed_catalogue",
            "sound entries with odd fields, to the map that brokers share",
        ),
        Target("log-files", "logs:feed_files", "segments with edits, to readers", 1024),
        Target("state-file", "state:feed_file", "the state store's file with edits, to its check", 1024),
        Target("state-values", "state:feed_value", "values of each table, to their decoders", 1024),
        Target("format-file", "state:feed_format", "the format file of a data directory"),
        Target("spark-log", "tables:feed_entry", "an entry of `_spark_metadata`"),
        Target(
            "spark-log-directory", "tables:feed_directory", "a table's log directory, to those who open it"
        ),
        Target("table-state", "tables:feed_state", "a table's own file"),
        Target("footers", "footers:feed_footer", "the key-value part of a Parquet file's footer", 1024),
        Target("delta-log", "delta:feed_version", "a version of `_delta_log`"),
        Target("delta-log-directory", "delta:feed_directory", "a `_delta_log`, to those who read it"),
        Target("json-values", "values:feed_json", "JSON values, to be columns"),
        Target("table-schema", "values:feed_schema", "the text of a schema", 1024),
        Target("publisher-lines", "tables:feed_line", "requests to the publisher, and its replies"),
        Target("settings", "configuration:feed_settings", "TOML, variables and --set"),
        Target("topic-configs", "configuration:feed_topic_configs", "settings of topics"),
    )
}
