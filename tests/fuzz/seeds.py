"""`python -m tests.fuzz.seeds`: makes the valid inputs of the corpus, out of what the product itself writes.

What once failed is in the corpus, too, under a name that begins with `found-`; it is left alone.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import cramjam

from faircopy.api.api_versions import SCHEMA as API_VERSIONS
from faircopy.api.routes import schema_of
from faircopy.copier.checkpoint import encode_producer as encode_seen
from faircopy.copier.checkpoint import encode_transaction as encode_branch
from faircopy.copier.fold import Branch, Standing
from faircopy.copier.producers import ProducerState, SeenBatch
from faircopy.datalog.index import time_key
from faircopy.groups.group_metadata import GroupMetadata, MemberMetadata, encode_group
from faircopy.journal.entry import TransactionId
from faircopy.journal.identity import TopicIdPartition
from faircopy.publish.spark_log import FIRST_COMPACTS, FIRST_ENTRY, DataFile, format_entry
from faircopy.publish.table_state import format_state
from faircopy.storage.data_directory import FORMAT, OLDEST_FORMAT, DirectoryFormat
from faircopy.transactions.metadata_journal import encode_producer
from faircopy.transactions.transaction import Producer, Transaction
from faircopy.wire import codec
from faircopy.wire.api_keys import ApiKey
from faircopy.wire.batch import HEADER, HEADER_BYTES, read_header
from faircopy.wire.messages import encode_request, encode_response
from faircopy.wire.records import NewRecord, build_batch, with_crc
from faircopy.wire.schema import REQUIRED, STRUCTURE, Field
from tests.fuzz import broker, configuration, journals, logs, state
from tests.fuzz.batches import ENCODERS
from tests.fuzz.columns import BATCHES_MAX
from tests.fuzz.footers import KEYS, SOUND
from tests.fuzz.messages import LAYOUTS, Layout
from tests.fuzz.tables import SOUND_LINES
from tests.fuzz.targets import TARGETS
from tests.fuzz.world import TOPIC
from tests.unit.publish.publish_oracle import POISON, with_section

CORPUS = Path(__file__).parent / "corpus"
FOUND = "found-"
PLAIN: dict[str, Any] = {
    "bool": False, "int8": 0, "int16": 0, "int32": 0, "int64": 0, "uuid": bytes(16), "string": TOPIC,
    "bytes": broker.ASSIGNMENT, "records": broker.BATCH,
}  # fmt: skip
MESSAGES = [
    NewRecord(b"value", b"key", 1_000),
    NewRecord(None, None, 2_000, (("h", b"x"), ("h", None))),
    NewRecord(b""),
]
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
FRAMES_OF_AN_INPUT = 4
MADE = b"\0" + bytes(4) + b"\x0f" + bytes(9)  # the choices for one plain message, in a header that fits

Seeds = Iterator[tuple[str, bytes]]


def main() -> None:
    """Write all seeds anew."""
    for target in TARGETS:
        directory = CORPUS / target
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.iterdir():
            if not old.name.startswith(FOUND):
                old.unlink()
        for name, content in seeds_of(target):
            (directory / name).write_bytes(content)


def seeds_of(target: str) -> Seeds:
    """The seeds of a target, each with its name."""
    seeds: Seeds = globals()[target.replace("-", "_")]()
    return seeds


def sized(content: bytes) -> bytes:
    """As `Choices.some` takes it."""
    return struct.pack(">H", len(content)) + content


# -- messages ------------------------------------------------------------------------------------------------


def plain_body(fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    """A body with one element in each array."""
    return {field.name: plain_value(field, version) for field in fields if field.versions.has(version)}


def plain_value(field: Field, version: int) -> Any:
    if field.tag is not None and field.default is not REQUIRED:
        return field.default
    value = plain_body(field.fields, version) if field.type == STRUCTURE else PLAIN[field.type]
    return [value] if field.array else value


def frames() -> Seeds:
    rows = [(api_key, last) for api_key, _, last in broker.VERSIONS]
    requests = [
        encode_request(
            schema_of(api_key), version, number, "seed", plain_body(schema_of(api_key).request, version)
        )
        for number, (api_key, version) in enumerate(rows)
    ]
    for first in range(0, len(requests), FRAMES_OF_AN_INPUT):
        names = "-".join(str(int(api_key)) for api_key, _ in rows[first : first + FRAMES_OF_AN_INPUT])
        yield f"apis-{names}", b"\0" + b"".join(requests[first : first + FRAMES_OF_AN_INPUT])
    yield "in-pieces", b"\3" + b"".join(requests[:2])
    yield "two-connections", broker.joined([b"\0" + requests[0], b"\0" + requests[1]])


def request_decoders() -> Seeds:
    for api_key in sorted({layout.api_key for layout in LAYOUTS}):
        versions = [layout.version for layout in LAYOUTS if layout.api_key == api_key]
        for version in {versions[0], versions[-1]}:
            out = bytearray(struct.pack(">H", LAYOUTS.index(Layout(schema_of(api_key), version))))
            codec.writer(schema_of(api_key), version, "request")(
                out, plain_body(schema_of(api_key).request, version)
            )
            yield f"{schema_of(api_key).name}-{version}", bytes(out)
    request = encode_request(API_VERSIONS, 3, 1, "seed", plain_body(schema_of(18).request, 3))
    yield "a-frame", b"\xff\xff" + request[4:]
    yield "an-assignment", b"\xff\xfe" + broker.ASSIGNMENT


def response_decoders() -> Seeds:
    for api_key in sorted({layout.api_key for layout in LAYOUTS}):
        version = max(layout.version for layout in LAYOUTS if layout.api_key == api_key)
        body = plain_body(schema_of(api_key).response, version)
        number = struct.pack(">H", LAYOUTS.index(Layout(schema_of(api_key), version)))
        yield (
            f"{schema_of(api_key).name}-{version}",
            number + encode_response(schema_of(api_key), version, 1, body)[4:],
        )


# -- requests, as choices ------------------------------------------------------------------------------------


class Chosen:
    """The choices that make a client of `tests.fuzz.broker` send certain requests."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self._learned: set[str] = set()

    def request(self, api_key: ApiKey, version: int, body: dict[str, Any], *learned: str) -> Chosen:
        """Add a request, whose answer tells the fields `learned`.

        A value of None stands for one that an earlier answer told.
        """
        number = next(number for number, row in enumerate(broker.VERSIONS) if row[0] == api_key)
        self.bytes += bytes([number, version - broker.VERSIONS[number][1]])
        self._structure(schema_of(api_key).request, version, body)
        self._learned |= set(learned)
        return self

    def _structure(self, fields: tuple[Field, ...], version: int, body: dict[str, Any]) -> None:
        for field in fields:
            if field.versions.has(version):
                self._field(field, version, body.get(field.name, plain_value(field, version)))

    def _field(self, field: Field, version: int, value: Any) -> None:
        if field.tag is not None:
            self.bytes.append(0)
        elif value is None and field.name not in self._learned:
            self.bytes.append(0xFF)
        elif field.array:
            self.bytes.append(0x40 + len(value))
            for element in value:
                self._value(field, version, element)
        else:
            self.bytes.append(0x40)
            self._value(field, version, value)

    def _value(self, field: Field, version: int, value: Any) -> None:
        if field.type == STRUCTURE:
            self._structure(field.fields, version, value)
            return
        if field.name in self._learned:
            self.bytes.append(0 if value is None else 0xFF)
            if value is None:
                return
        getattr(self, f"_{field.type if field.type not in broker.BITS else 'integer'}")(value)

    def _integer(self, value: int) -> None:
        self.bytes.append(broker.NUMBERS.index(value))

    def _bool(self, value: bool) -> None:
        self.bytes.append(value)

    def _string(self, value: str) -> None:
        self.bytes.append(broker.NAMES.index(value))

    def _bytes(self, _value: bytes) -> None:
        self.bytes.append(1)

    def _records(self, value: int) -> None:
        self.bytes += bytes([value if isinstance(value, int) else 1, 0])

    def _uuid(self, value: bytes) -> None:
        self.bytes += value


PARTITIONS = {"topics": [{"name": TOPIC, "partitions": [0]}]}
PRODUCER: dict[str, Any] = {"transactional_id": TOPIC, "producer_id": None, "producer_epoch": None}
TRANSACTIONAL_BATCH = 2


def produced(records: int, transactional_id: str) -> dict[str, Any]:
    data = [{"name": TOPIC, "partition_data": [{"index": 0, "records": records}]}]
    return {"transactional_id": transactional_id, "acks": -1, "timeout_ms": 1_000, "topic_data": data}


def begun() -> Chosen:
    """A transaction with a message in it."""
    init = {
        "transactional_id": TOPIC,
        "transaction_timeout_ms": 60_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    chosen = Chosen().request(ApiKey.INIT_PRODUCER_ID, 4, init, "producer_id", "producer_epoch")
    chosen.request(ApiKey.ADD_PARTITIONS_TO_TXN, 3, PRODUCER | PARTITIONS)
    return chosen.request(ApiKey.PRODUCE, 9, produced(TRANSACTIONAL_BATCH, TOPIC))


def fetched(offset: int) -> dict[str, Any]:
    asked = {
        "partition": 0,
        "fetch_offset": offset,
        "partition_max_bytes": 60_000,
        "current_leader_epoch": -1,
    }
    return {"max_wait_ms": 0, "max_bytes": 60_000, "topics": [{"topic": TOPIC, "partitions": [asked]}]}


def listed(timestamp: int) -> dict[str, Any]:
    asked = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}
    return {"replica_id": -1, "topics": [{"name": TOPIC, "partitions": [asked]}]}


def requests() -> Seeds:
    for api_key, _, last in broker.VERSIONS:
        body = plain_body(schema_of(api_key).request, last)
        yield f"{schema_of(api_key).name}-{last}", bytes(Chosen().request(ApiKey(api_key), last, body).bytes)
    for name, commit in (("commit", True), ("abort", False)):
        ended = begun().request(ApiKey.END_TXN, 3, PRODUCER | {"committed": commit})
        yield f"transaction-{name}", bytes(ended.request(ApiKey.FETCH, 12, fetched(0)).bytes)
    offsets = {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 1}]}]}
    grouped = begun().request(ApiKey.ADD_OFFSETS_TO_TXN, 3, PRODUCER | {"group_id": "group"})
    grouped.request(ApiKey.TXN_OFFSET_COMMIT, 2, PRODUCER | {"group_id": "group"} | offsets)
    yield (
        "transaction-offsets",
        bytes(grouped.request(ApiKey.END_TXN, 3, PRODUCER | {"committed": True}).bytes),
    )
    plain = Chosen().request(ApiKey.PRODUCE, 9, produced(1, ""))
    plain.request(ApiKey.LIST_OFFSETS, 7, listed(1_000)).request(ApiKey.FETCH, 11, fetched(1))
    yield "produce-and-read", bytes(plain.bytes)
    joining = {
        "group_id": "group", "session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000, "member_id": "",
        "group_instance_id": None, "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }  # fmt: skip
    member = {"group_id": "group", "member_id": None, "generation_id": None, "group_instance_id": None}
    group = Chosen().request(ApiKey.JOIN_GROUP, 3, joining, "member_id", "generation_id")
    group.request(ApiKey.SYNC_GROUP, 3, member | {"assignments": [{"member_id": None}]})
    group.request(ApiKey.HEARTBEAT, 3, member).request(ApiKey.OFFSET_COMMIT, 6, member | offsets)
    yield "group", bytes(group.request(ApiKey.LEAVE_GROUP, 2, {"group_id": "group", "member_id": None}).bytes)


# -- batches -------------------------------------------------------------------------------------------------


def batches() -> Seeds:
    """Batches of each codec and kind."""
    plain = build_batch(MESSAGES, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    yield "transactional", plain
    yield "append-time", build_batch(MESSAGES, append_time_ms=5_000)
    for name, number in CODECS.items():
        section = bytes(ENCODERS[number](plain[HEADER_BYTES:]))
        header = read_header(plain)
        changed = header._replace(
            length=HEADER_BYTES - 12 + len(section), attributes=header.attributes | number
        )
        yield name, with_crc(HEADER.pack(*changed) + section)


def record_batches() -> Seeds:
    for name, batch in batches():
        yield name, b"\1" + batch
    yield "made", b"\3" + MADE


def decompression() -> Seeds:
    for name, number in CODECS.items():
        yield name, bytes([number]) + bytes(ENCODERS[number](b"some text, " * 20))
    framed = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    block = bytes(cramjam.snappy.compress_raw(b"some text, " * 20))
    yield "snappy-java", bytes([2]) + framed + (struct.pack(">i", len(block)) + block) * 2
    yield "zstd-bomb", bytes([4]) + bytes(cramjam.zstd.compress(bytes(64 << 20)))
    yield "gzip-bomb", bytes([1]) + bytes(cramjam.gzip.compress(bytes(4 << 20)))
    yield "none", b"\0text"


def columns() -> Seeds:
    found = dict(batches())
    for name, batch in found.items():
        yield name, b"\0" + sized(batch)
    yield "all", b"".join(b"\0" + sized(batch) for batch in found.values())
    yield "made", (b"\1" + MADE) * 2
    poison = [with_section(build_batch(MESSAGES[:1]), section) for section in POISON.values()]
    for first in range(0, len(poison), BATCHES_MAX):
        yield (
            f"poison-{first}",
            b"".join(b"\0" + sized(batch) for batch in poison[first : first + BATCHES_MAX]),
        )


# -- files ---------------------------------------------------------------------------------------------------

EDITS = {
    "none": b"",
    "flip": b"\0" + b"\0\0\x50" + b"\x01",
    "overwrite": b"\1" + b"\0\0\x60" + b"\4zero",
    "cut": b"\2" + b"\0\0\x70",
    "remove": b"\3" + b"\0\0\x40" + b"\0\x40",
    "insert": b"\4" + b"\0\0\x41" + b"\2xx",
    "copy": b"\5" + b"\0\0\x80" + b"\0\0\x40" + b"\0\x40",
}


def journal_files() -> Seeds:
    for name, edit in EDITS.items():
        yield name, b"\0\1\7" + edit
    yield "from-a-checkpoint", bytes([len(journals.SOUND) - 2])
    yield "a-file-is-missing", b"\0\1\0"


def log_files() -> Seeds:
    for name, edit in EDITS.items():
        yield name, bytes(4 * 4 + 8) + b"\0\7" + edit
    middle = logs.END_OFFSET // 2
    yield "reads", (struct.pack(">I", middle)[1:] + b"\4") * 4 + struct.pack(">q", 6_000)
    yield "a-file-is-missing", bytes(4 * 4 + 8) + b"\0\0"


def state_file() -> Seeds:
    yield from EDITS.items()
    yield "newest-head", b"\0" + b"\0\x10\x80" + b"\1"
    yield "older-head", b"\0" + b"\0\0\x80" + b"\1"


def entry(kind: int, payload: bytes, transaction: int = 1) -> bytes:
    """An entry as the targets of sound entries choose it: its parts fit; it is durable when it says so."""
    return bytes([kind, transaction, 0x7F]) + payload


def journal_entries() -> Seeds:
    plain, draft, prepared, apply, discard, trim = range(6)
    batch = b"\1\0"
    yield "plain", entry(plain, batch) * 2 + entry(trim, b"\1\1\1")
    yield "applied", entry(draft, batch) * 2 + entry(prepared, b"\1\2\xff") + entry(apply, b"\1\1\xff")
    yield "discarded", entry(draft, batch) + entry(discard, b"\1\1\xff")
    yield "open", entry(draft, batch, 1) + entry(draft, batch, 3) + entry(draft, batch, 1)


def metadata_entries() -> Seeds:
    fence, begin, add, prepare_commit, prepare_abort, committed, aborted, forget, doubt = range(9)
    places = b"\1" + b"\0\0\1" + b"\0\1\1"
    plain = places + b"\0" + bytes(7)
    with_leaders = places + b"\1" + bytes(7)
    begun = entry(fence, plain) + entry(begin, plain) + entry(add, with_leaders)
    yield "commit", begun + entry(prepare_commit, plain) + entry(committed, plain)
    yield "abort", begun + entry(prepare_abort, plain) + entry(aborted, plain) + entry(forget, plain)
    yield "doubt", entry(fence, plain) + entry(doubt, plain)


def offsets_entries() -> Seeds:
    plain, draft, _, apply, discard, _ = range(6)
    row = b"\1" + b"\1" + b"\0\0\1\1" + b"\1" + b"\1" + b"\4"  # place, offset, epoch, text, group
    members = b"\1" + b"\0" + b"\1" + b"\4said" + b"\0"
    yield "plain", entry(plain, row) * 2
    yield "members", entry(plain, members) + entry(plain, row)
    yield "applied", entry(draft, row) + entry(apply, b"\1\1\xff")
    yield "discarded", entry(draft, row) + entry(discard, b"\1\1\xff") + entry(draft, row, 3)


MEMBER = MemberMetadata("member", None, "client", "/host", 60_000, 60_000, (("range", b"said"),), b"given")
MEMBERS = encode_group("group", GroupMetadata(1, "consumer", "range", "member", (MEMBER,)))


def state_values() -> Seeds:
    transaction_id, topic_id = TransactionId(1, 0, 1), bytes(16)
    place, number = struct.pack(">QQ", 0, 0), struct.pack(">Q", 1)
    producer = encode_seen(ProducerState(0, (SeenBatch(0, 1, 0),), 0))
    branch = encode_branch(Branch(Standing.OPEN, head=0, first=0, drafts=1, records=1, size=100))
    txid = struct.pack(">qhq", *transaction_id)
    topic = json.dumps({"id": topic_id.hex(), "partitions": 1, "configs": {}}).encode()
    open_producer = Producer("orders", 1, 0, 60_000)
    open_producer.current = Transaction(transaction_id, "orders", 60_000, 1)
    open_producer.current.epochs = {TopicIdPartition(topic_id, 0): 1}
    producers = b"\x08" + struct.pack(">q", 1) + sized(producer)
    branches = bytes([len(txid)]) + txid + sized(branch)
    committed = json.dumps(["group", topic_id.hex(), 0, 1, 0, "", 1]).encode()
    yield "partition", b"\0" + sized(state.SOUND_CHECKPOINT) + producers + branches
    places = b"\x08" + bytes(8) + sized(place)
    times = b"\x08" + time_key(b"", 1) + sized(number)
    yield "indexes", b"\1" + places + times + number * 3
    yield "spans", b"\2\x08" + number + sized(number + txid)
    yield "group-offsets", b"\3\1g" + sized(committed) + b"\1g" + sized(MEMBERS)
    whole = json.dumps(encode_producer(open_producer)).encode()
    yield "transactional-ids", b"\4" + sized(b"") + b"\1o" + sized(whole)
    yield "cluster", b"\5\6orders" + sized(number + topic) + sized(number + b"1000")


def format_file() -> Seeds:
    yield "sound", b"\0" + DirectoryFormat(FORMAT, "abc").encode()
    yield "before", b"\0" + DirectoryFormat(OLDEST_FORMAT, "abc").encode()
    yield "odd", b"\1\3\1\0\4"


# -- plain tables --------------------------------------------------------------------------------------------

TABLE = PurePosixPath("/plain/orders")
DATA_FILE = DataFile("d-0000000032-0..9.1f2e3d4c.parquet", 1_234, 1_790_000_000_000)


def spark_log() -> Seeds:
    yield "one-file", format_entry(TABLE, [DATA_FILE])
    yield "two-files", format_entry(TABLE, [DATA_FILE, DATA_FILE._replace(name="ä b.parquet")])
    yield "no-file", format_entry(TABLE, [])


def spark_log_directory() -> Seeds:
    first = bytes([FIRST_COMPACTS[0], 2, 0, 1]) + bytes([FIRST_COMPACTS[1], 2, 0, 1])
    listed = bytes([FIRST_ENTRY]) + b"\0" + sized(format_entry(TABLE, [DATA_FILE]))
    yield "a-new-table", first + listed
    yield "odd-names", first + listed + b"\xff\3.xy\0\0\0"
    yield "a-gap", first + listed + bytes([FIRST_ENTRY + 2]) + b"\0" + sized(format_entry(TABLE, [DATA_FILE]))


def table_state() -> Seeds:
    yield "empty", b"\0" + format_state({})
    yield "one-file", b"\0" + format_state({DATA_FILE.name: DATA_FILE.modified_ms})
    yield "odd", b"\1\3\2\0\0"


def footers() -> Seeds:
    yield "sound", b""
    for number, key in enumerate(KEYS):
        yield key.removeprefix("faircopy."), bytes(number) + b"\1" + sized(SOUND[key].encode())
        yield f"odd-{key.removeprefix('faircopy.')}", bytes(number) + b"\2\3\0\3\0\0\0"


def publisher_lines() -> Seeds:
    for number, line in enumerate(SOUND_LINES):
        verb = next(key for key in line if key not in ("id", "now_ms"))
        yield verb, b"\xff" + json.dumps(line).encode()
        yield f"odd-{verb}", bytes([number]) + b"\3\0\3\0\0\0"


# -- configuration -------------------------------------------------------------------------------------------


def settings() -> Seeds:
    yield "toml-flat", b'\0"journal.segment.bytes" = 1048576\nlisteners = "[::1]:0"\n'
    yield "toml-nested", b"\0[journal.segment]\nbytes = 1048576\n[plain]\nenabled = false\n"
    name = bytes([configuration.NAMES.index("listeners")])
    yield "environment", b"\1" + name + b"\xff" + sized(b"0.0.0.0:9092")
    own_name, own_text = b"\xff" + sized(b"durability"), b"\xff" + sized(b"os")
    yield "override", b"\3" + name + b"\xff" + sized(b"localhost:1") + own_name + own_text
    yield "toml-odd", b"\2" + name + b"\1" + name + b"\2"


def topic_configs() -> Seeds:
    name = bytes([configuration.TOPIC_NAMES.index("retention.ms")])
    yield "retention", sized(b"orders") + name + b"\xff" + sized(b"-1")
    name = bytes([configuration.TOPIC_NAMES.index("plain.table")])
    yield "table", sized(b"a.b_c-d") + name + b"\xff" + sized(b"other")


if __name__ == "__main__":
    main()
