"""What each library tells its application in each situation, and what the application then does."""

from __future__ import annotations

from typing import NamedTuple

from tests.clients.errors.application import Error
from tests.clients.errors.trial import Remedy, Told


class Seen(NamedTuple):
    """What is told, if anything, and the remedy."""

    told: Told | None
    remedy: Remedy


NOTHING = Seen(None, Remedy.NOTHING)


def asking(step: str, name: str, *says: str) -> Seen:
    """It is told that, and asks what became of the transaction."""
    return Seen(Told(step, Error(name, says)), Remedy.ASK)


def aborting(step: str, name: str, *says: str) -> Seen:
    """It is told that, and goes on with the same producer after an abort."""
    return Seen(Told(step, Error(name, says)), Remedy.ABORT)


def anew(step: str, name: str, *says: str) -> Seen:
    """It is told that, and needs a new producer."""
    return Seen(Told(step, Error(name, says)), Remedy.NEW_PRODUCER)


CONFLUENT_KAFKA = {
    "the coordinator is busy": NOTHING,
    "the transaction before is ending": NOTHING,
    "the answer is lost": NOTHING,
    "the commit is lost": NOTHING,
    "the broker is killed before the commit": NOTHING,
    "the broker is killed after the commit": NOTHING,
    "replicas are missing": NOTHING,
    "the disk is full": NOTHING,
    "no answer, but applied": asking("commit", "KafkaException: _TIMED_OUT", "retriable"),
    "no answer, not applied": asking("commit", "KafkaException: _TIMED_OUT", "retriable"),
    "the broker stays away": asking("commit", "KafkaException: _TIMED_OUT", "retriable"),
    "the transaction timed out": anew("commit", "KafkaException: _FENCED", "fatal"),
    "another instance came": anew("commit", "KafkaException: _FENCED", "fatal"),
    "TRANSACTION_ABORTABLE at the commit": aborting(
        "commit", "KafkaException: TRANSACTION_ABORTABLE", "txn_requires_abort"
    ),
    "INVALID_TXN_STATE at the commit": anew("commit", "KafkaException: INVALID_TXN_STATE", "fatal"),
    "INVALID_PRODUCER_ID_MAPPING at the commit": aborting(
        "commit", "KafkaException: INVALID_PRODUCER_ID_MAPPING", "txn_requires_abort"
    ),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED at the commit": anew(
        "commit", "KafkaException: TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "fatal"
    ),
    "MESSAGE_TOO_LARGE at a message": anew("send", "KafkaException: MSG_SIZE_TOO_LARGE"),
    "OUT_OF_ORDER_SEQUENCE_NUMBER at a message": anew("send", "KafkaException: OUT_OF_ORDER_SEQUENCE_NUMBER"),
    "UNKNOWN_PRODUCER_ID at a message": aborting("send", "KafkaException: UNKNOWN_PRODUCER_ID"),
    "INVALID_PRODUCER_EPOCH at a message": anew("send", "KafkaException: INVALID_PRODUCER_EPOCH"),
    "TOPIC_AUTHORIZATION_FAILED at a message": anew("send", "KafkaException: TOPIC_AUTHORIZATION_FAILED"),
}
AIOKAFKA = {
    "the coordinator is busy": NOTHING,
    "the transaction before is ending": NOTHING,
    "the answer is lost": NOTHING,
    "the commit is lost": NOTHING,
    "the broker is killed before the commit": NOTHING,
    "the broker is killed after the commit": NOTHING,
    "replicas are missing": NOTHING,
    "the disk is full": NOTHING,
    "no answer, but applied": asking("commit", "TimeoutError"),
    "no answer, not applied": asking("commit", "TimeoutError"),
    "the broker stays away": asking("commit", "TimeoutError"),
    "the transaction timed out": anew("commit", "ProducerFenced"),
    "another instance came": anew("commit", "ProducerFenced"),
    "TRANSACTION_ABORTABLE at the commit": anew("commit", "KafkaError"),
    "INVALID_TXN_STATE at the commit": anew("commit", "KafkaError"),
    "INVALID_PRODUCER_ID_MAPPING at the commit": anew("commit", "KafkaError"),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED at the commit": anew(
        "commit", "TransactionalIdAuthorizationFailed"
    ),
    "MESSAGE_TOO_LARGE at a message": anew("send", "MessageSizeTooLargeError"),
    "OUT_OF_ORDER_SEQUENCE_NUMBER at a message": anew("send", "OutOfOrderSequenceNumber"),
    "UNKNOWN_PRODUCER_ID at a message": anew("send", "UnknownProducerId"),
    "INVALID_PRODUCER_EPOCH at a message": anew("send", "ProducerFenced"),
    "TOPIC_AUTHORIZATION_FAILED at a message": anew("send", "TopicAuthorizationFailedError"),
}
KAFKA_PYTHON = {
    "the coordinator is busy": NOTHING,
    "the transaction before is ending": NOTHING,
    "the answer is lost": NOTHING,
    "the commit is lost": NOTHING,
    "the broker is killed before the commit": NOTHING,
    "the broker is killed after the commit": NOTHING,
    "replicas are missing": NOTHING,
    "the disk is full": NOTHING,
    "no answer, but applied": asking("commit", "KafkaError"),
    "no answer, not applied": asking("commit", "KafkaError"),
    "the transaction timed out": anew("commit", "ProducerFencedError"),
    "another instance came": anew("commit", "ProducerFencedError"),
    "TRANSACTION_ABORTABLE at the commit": anew("commit", "KafkaError"),
    "INVALID_TXN_STATE at the commit": anew("commit", "InvalidTxnStateError"),
    "INVALID_PRODUCER_ID_MAPPING at the commit": anew("commit", "KafkaError"),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED at the commit": anew(
        "commit", "TransactionalIdAuthorizationFailedError"
    ),
    "MESSAGE_TOO_LARGE at a message": anew("send", "MessageSizeTooLargeError"),
    "OUT_OF_ORDER_SEQUENCE_NUMBER at a message": anew("send", "OutOfOrderSequenceNumberError"),
    "UNKNOWN_PRODUCER_ID at a message": anew("send", "UnknownProducerIdError"),
    "INVALID_PRODUCER_EPOCH at a message": anew("send", "InvalidProducerEpochError"),
    "TOPIC_AUTHORIZATION_FAILED at a message": anew("send", "TopicAuthorizationFailedError"),
}
JAVA = {
    "the coordinator is busy": NOTHING,
    "the transaction before is ending": NOTHING,
    "the answer is lost": NOTHING,
    "the commit is lost": NOTHING,
    "the broker is killed before the commit": NOTHING,
    "the broker is killed after the commit": NOTHING,
    "replicas are missing": NOTHING,
    "the disk is full": NOTHING,
    "no answer, but applied": asking("commit", "TimeoutException", "RetriableException"),
    "no answer, not applied": asking("commit", "TimeoutException", "RetriableException"),
    "the broker stays away": asking("commit", "TimeoutException", "RetriableException"),
    "the transaction timed out": anew("commit", "ProducerFencedException", "ApplicationRecoverableException"),
    "another instance came": anew("commit", "ProducerFencedException", "ApplicationRecoverableException"),
    "TRANSACTION_ABORTABLE at the commit": aborting("commit", "TransactionAbortableException"),
    "INVALID_TXN_STATE at the commit": anew("commit", "InvalidTxnStateException"),
    "INVALID_PRODUCER_ID_MAPPING at the commit": anew(
        "commit", "InvalidPidMappingException", "ApplicationRecoverableException"
    ),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED at the commit": anew(
        "commit", "TransactionalIdAuthorizationException"
    ),
    "MESSAGE_TOO_LARGE at a message": aborting("send", "RecordTooLargeException"),
    "OUT_OF_ORDER_SEQUENCE_NUMBER at a message": aborting("send", "OutOfOrderSequenceException"),
    "UNKNOWN_PRODUCER_ID at a message": NOTHING,
    "INVALID_PRODUCER_EPOCH at a message": aborting(
        "send", "InvalidProducerEpochException", "ApplicationRecoverableException"
    ),
    "TOPIC_AUTHORIZATION_FAILED at a message": aborting("send", "TopicAuthorizationException"),
}
KAFKAJS = {
    "the coordinator is busy": asking(
        "commit", "KafkaJSProtocolError: GROUP_COORDINATOR_NOT_AVAILABLE", "retriable"
    ),
    "the transaction before is ending": asking(
        "commit", "KafkaJSProtocolError: CONCURRENT_TRANSACTIONS", "retriable"
    ),
    "the answer is lost": asking("commit", "KafkaJSConnectionClosedError", "retriable"),
    "the commit is lost": asking("commit", "KafkaJSConnectionClosedError", "retriable"),
    "the broker is killed before the commit": asking("commit", "KafkaJSConnectionClosedError", "retriable"),
    "the broker is killed after the commit": asking("commit", "KafkaJSConnectionClosedError", "retriable"),
    "replicas are missing": NOTHING,
    "the disk is full": NOTHING,
    "no answer, but applied": asking("commit", "(its own timer)"),
    "no answer, not applied": asking("commit", "(its own timer)"),
    "the broker stays away": asking("commit", "(its own timer)"),
    "the transaction timed out": anew("commit", "KafkaJSProtocolError: INVALID_PRODUCER_EPOCH"),
    "another instance came": anew("commit", "KafkaJSProtocolError: INVALID_PRODUCER_EPOCH"),
    "TRANSACTION_ABORTABLE at the commit": anew("commit", "KafkaJSProtocolError: KAFKAJS_UNKNOWN_ERROR_CODE"),
    "INVALID_TXN_STATE at the commit": anew("commit", "KafkaJSProtocolError: INVALID_TXN_STATE"),
    "INVALID_PRODUCER_ID_MAPPING at the commit": anew(
        "commit", "KafkaJSProtocolError: INVALID_PRODUCER_ID_MAPPING"
    ),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED at the commit": anew(
        "commit", "KafkaJSProtocolError: TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    ),
    "MESSAGE_TOO_LARGE at a message": aborting("send", "KafkaJSProtocolError: MESSAGE_TOO_LARGE"),
    "OUT_OF_ORDER_SEQUENCE_NUMBER at a message": aborting(
        "send", "KafkaJSProtocolError: OUT_OF_ORDER_SEQUENCE_NUMBER"
    ),
    "UNKNOWN_PRODUCER_ID at a message": aborting("send", "KafkaJSProtocolError: UNKNOWN_PRODUCER_ID"),
    "INVALID_PRODUCER_EPOCH at a message": aborting("send", "KafkaJSProtocolError: INVALID_PRODUCER_EPOCH"),
    "TOPIC_AUTHORIZATION_FAILED at a message": aborting(
        "send", "KafkaJSProtocolError: TOPIC_AUTHORIZATION_FAILED"
    ),
}
FRANZ_GO = {
    "the coordinator is busy": NOTHING,
    "the transaction before is ending": NOTHING,
    "the answer is lost": NOTHING,
    "the commit is lost": NOTHING,
    "the broker is killed before the commit": NOTHING,
    "the broker is killed after the commit": NOTHING,
    "replicas are missing": NOTHING,
    "the disk is full": NOTHING,
    "no answer, but applied": asking("commit", "context.DeadlineExceeded"),
    "no answer, not applied": asking("commit", "context.DeadlineExceeded"),
    "the transaction timed out": anew("commit", "kerr: PRODUCER_FENCED"),
    "another instance came": anew("commit", "kerr: PRODUCER_FENCED"),
    "TRANSACTION_ABORTABLE at the commit": anew("commit", "kerr: TRANSACTION_ABORTABLE"),
    "INVALID_TXN_STATE at the commit": anew("commit", "kerr: INVALID_TXN_STATE"),
    "INVALID_PRODUCER_ID_MAPPING at the commit": aborting("commit", "kerr: INVALID_PRODUCER_ID_MAPPING"),
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED at the commit": anew(
        "commit", "kerr: TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
    ),
    "MESSAGE_TOO_LARGE at a message": aborting("send", "kerr: MESSAGE_TOO_LARGE"),
    "OUT_OF_ORDER_SEQUENCE_NUMBER at a message": anew("send", "kerr: OUT_OF_ORDER_SEQUENCE_NUMBER"),
    "UNKNOWN_PRODUCER_ID at a message": aborting("send", "kerr: UNKNOWN_PRODUCER_ID"),
    "INVALID_PRODUCER_EPOCH at a message": aborting("send", "kerr: INVALID_PRODUCER_EPOCH"),
    "TOPIC_AUTHORIZATION_FAILED at a message": aborting("send", "kerr: TOPIC_AUTHORIZATION_FAILED"),
}
TOLD: dict[str, dict[str, Seen]] = {
    "confluent-kafka": CONFLUENT_KAFKA,
    "aiokafka": AIOKAFKA,
    "kafka-python": KAFKA_PYTHON,
    "Java": JAVA,
    "KafkaJS": KAFKAJS,
    "franz-go": FRANZ_GO,
}
