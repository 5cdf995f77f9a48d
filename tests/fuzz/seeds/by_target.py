"""The seeds of all targets."""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.seeds import batches, configuration, entries, files, link, messages, requests, tables, values
from tests.fuzz.seeds.seed import Seeds

SEEDS: dict[str, Callable[[], Seeds]] = {
    "frames": messages.frames,
    "requests": requests.requests,
    "request-decoders": messages.request_decoders,
    "response-decoders": messages.response_decoders,
    "link-messages": link.link_messages,
    "record-batches": batches.record_batches,
    "decompression": batches.decompression,
    "columns": batches.columns,
    "journal-files": files.journal_files,
    "journal-entries": entries.journal_entries,
    "metadata-entries": entries.metadata_entries,
    "offsets-entries": entries.offsets_entries,
    "catalogue-entries": entries.catalogue_entries,
    "log-files": files.log_files,
    "state-file": files.state_file,
    "state-values": values.state_values,
    "format-file": files.format_file,
    "spark-log": tables.spark_log,
    "spark-log-directory": tables.spark_log_directory,
    "table-state": tables.table_state,
    "footers": tables.footers,
    "delta-log": tables.delta_versions,
    "delta-log-directory": tables.delta_directory,
    "json-values": tables.json_values,
    "table-schema": tables.table_schema,
    "publisher-lines": tables.publisher_lines,
    "settings": configuration.settings,
    "topic-configs": configuration.topic_configs,
}


def seeds_of(target: str) -> Seeds:
    """The seeds of a target, each with its name."""
    return SEEDS[target]()
