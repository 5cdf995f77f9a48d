"""The Kafka error code for each of our errors."""

from __future__ import annotations

from faircopy.catalogue.topic_configs import InvalidTopicConfig
from faircopy.catalogue.topics import InvalidTopicName, TopicExists, UnknownTopic, UnknownTopicId
from faircopy.copier.producers import OutOfOrderSequence, StaleDuplicate, StaleEpoch
from faircopy.errors import FaircopyError
from faircopy.hosting.administration import TooManyPartitions
from faircopy.journal.errors import NotEnoughReplicas
from faircopy.partition.participant import NotLed
from faircopy.partition.partition import InTransaction, NoOpenTransaction
from faircopy.storage.versioned_map import Conflict
from faircopy.transactions.decisions import TransactionRefused
from faircopy.wire.batch import CorruptBatch, InvalidBatch, InvalidTimestamp, OldMagic
from faircopy.wire.compression import RecordsError, TooLargeError
from faircopy.wire.error_codes import ErrorCode

MESSAGE_CHARS_MAX = 1_000

CODES: tuple[tuple[type[FaircopyError], ErrorCode], ...] = (
    (InvalidTopicName, ErrorCode.INVALID_TOPIC_EXCEPTION),
    (TopicExists, ErrorCode.TOPIC_ALREADY_EXISTS),
    (Conflict, ErrorCode.TOPIC_ALREADY_EXISTS),
    (UnknownTopicId, ErrorCode.UNKNOWN_TOPIC_ID),
    (UnknownTopic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (InvalidTopicConfig, ErrorCode.INVALID_CONFIG),
    (TooManyPartitions, ErrorCode.INVALID_PARTITIONS),
    (CorruptBatch, ErrorCode.CORRUPT_MESSAGE),
    (OldMagic, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    (InvalidBatch, ErrorCode.INVALID_RECORD),
    (InvalidTimestamp, ErrorCode.INVALID_TIMESTAMP),
    (TooLargeError, ErrorCode.MESSAGE_TOO_LARGE),
    (RecordsError, ErrorCode.INVALID_RECORD),
    (StaleEpoch, ErrorCode.INVALID_PRODUCER_EPOCH),
    (OutOfOrderSequence, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    (StaleDuplicate, ErrorCode.DUPLICATE_SEQUENCE_NUMBER),
    (InTransaction, ErrorCode.INVALID_TXN_STATE),
    (NoOpenTransaction, ErrorCode.INVALID_TXN_STATE),
    (NotLed, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (NotEnoughReplicas, ErrorCode.NOT_ENOUGH_REPLICAS),
)


class Refused(FaircopyError):
    """A request, or a part of it, is refused with this code. Nothing was done."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def code_of(error: FaircopyError) -> ErrorCode:
    """The code for an error."""
    if isinstance(error, (Refused, TransactionRefused)):
        return error.code
    return next((code for kind, code in CODES if isinstance(error, kind)), ErrorCode.KAFKA_STORAGE_ERROR)


def message_of(error: Exception) -> str:
    """The message for an error in a response. It is short, whatever a client put into the names in it."""
    return str(error)[:MESSAGE_CHARS_MAX]
