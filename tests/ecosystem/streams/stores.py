"""Where Kafka Streams keeps its state: settings for each store that it has."""

from __future__ import annotations

from typing import Final

SUPPLIERS = "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers"
STORES: Final[dict[str, dict[str, str]]] = {
    "rocksdb": {},  # the default
    "memory": {"dsl.store.suppliers.class": f"{SUPPLIERS}$InMemoryDslStoreSuppliers"},
}
