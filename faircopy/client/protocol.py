"""The requests that the client sends, each in one version.

These are extracts of the layouts in `faircopy/api`, which a client does not import; a test compares them.
"""

from __future__ import annotations

from typing import NamedTuple

from faircopy.wire.schema import Schema


class Request(NamedTuple):
    """One request in the version that the client speaks."""

    schema: Schema
    version: int


METADATA = Request(
    Schema("""
api 3 Metadata 12 flexible 9+
  request
    topics                                 []?
        topic_id                           uuid       = zero
        name                               string?
    allow_auto_topic_creation              bool       = true
    include_topic_authorized_operations    bool       = false
  response
    throttle_time_ms                       int32
    brokers                                []
        node_id                            int32
        host                               string
        port                               int32
        rack                               string?
    cluster_id                             string?
    controller_id                          int32
    topics                                 []
        error_code                         int16
        name                               string?
        topic_id                           uuid
        is_internal                        bool
        partitions                         []
            error_code                     int16
            partition_index                int32
            leader_id                      int32
            leader_epoch                   int32
            replica_nodes                  []int32
            isr_nodes                      []int32
            offline_replicas               []int32
        topic_authorized_operations        int32
"""),
    12,
)

FIND_COORDINATOR = Request(
    Schema("""
api 10 FindCoordinator 2 flexible 3+
  request
    key               string
    key_type          int8
  response
    throttle_time_ms  int32
    error_code        int16
    error_message     string?
    node_id           int32
    host              string
    port              int32
"""),
    2,
)

ADD_PARTITIONS_TO_TXN = Request(
    Schema("""
api 24 AddPartitionsToTxn 3 flexible 3+
  request
    transactional_id          string
    producer_id               int64
    producer_epoch            int16
    topics                    []
        name                  string
        partitions            []int32
  response
    throttle_time_ms          int32
    results                   []
        name                  string
        partitions            []
            partition_index   int32
            error_code        int16
"""),
    3,
)

PRODUCE = Request(
    Schema("""
api 0 Produce 9 flexible 9+
  request
    transactional_id                       string?
    acks                                   int16
    timeout_ms                             int32
    topic_data                             []
        name                               string
        partition_data                     []
            index                          int32
            records                        records?
  response
    responses                              []
        name                               string
        partition_responses                []
            index                          int32
            error_code                     int16
            base_offset                    int64
            log_append_time_ms             int64
            log_start_offset               int64
            record_errors                  []
                batch_index                int32
                batch_index_error_message  string?
            error_message                  string?
    throttle_time_ms                       int32
"""),
    9,
)

END_TXN = Request(
    Schema("""
api 26 EndTxn 3 flexible 3+
  request
    transactional_id  string
    producer_id       int64
    producer_epoch    int16
    committed         bool
  response
    throttle_time_ms  int32
    error_code        int16
"""),
    3,
)

JOIN_TRANSACTION = Request(
    Schema("""
api 20002 JoinTransaction 0 flexible 0+
  request
    group             string
    run               string
    key               int64
    member            string
    timeout_ms        int32
  response
    error_code        int16
    error_message     string?
    is_committed      bool
    transactional_id  string
    producer_id       int64
    producer_epoch    int16
"""),
    0,
)

END_JOINT_TRANSACTION = Request(
    Schema("""
api 20003 EndJointTransaction 0 flexible 0+
  request
    group          string
    run            string
    key            int64
    committed      bool
    producer_ids   []int64
  response
    error_code     int16
    error_message  string?
"""),
    0,
)

FORGET_TRANSACTION_GROUP = Request(
    Schema("""
api 20004 ForgetTransactionGroup 0 flexible 0+
  request
    group          string
  response
    error_code     int16
    error_message  string?
"""),
    0,
)

FETCH = Request(
    Schema("""
api 1 Fetch 12 flexible 12+
  request
    replica_id                      int32     = -1
    max_wait_ms                     int32
    min_bytes                       int32
    max_bytes                       int32
    isolation_level                 int8      = 0
    session_id                      int32     = 0
    session_epoch                   int32     = -1
    topics                          []
        topic                       string
        partitions                  []
            partition               int32
            current_leader_epoch    int32     = -1
            fetch_offset            int64
            last_fetched_epoch      int32     = -1
            log_start_offset        int64     = -1
            partition_max_bytes     int32
    forgotten_topics_data           []        = []
        topic                       string
        partitions                  []int32
    rack_id                         string    = ""
  response
    throttle_time_ms                int32
    error_code                      int16
    session_id                      int32
    responses                       []
        topic                       string
        partitions                  []
            partition_index         int32
            error_code              int16
            high_watermark          int64
            last_stable_offset      int64
            log_start_offset        int64
            aborted_transactions    []?
                producer_id         int64
                first_offset        int64
            preferred_read_replica  int32
            records                 records?
"""),
    12,
)

LIST_OFFSETS = Request(
    Schema("""
api 2 ListOffsets 5 flexible 6+
  request
    replica_id                     int32     = -1
    isolation_level                int8      = 0
    topics                         []
        name                       string
        partitions                 []
            partition_index        int32
            current_leader_epoch   int32     = -1
            timestamp              int64
  response
    throttle_time_ms               int32
    topics                         []
        name                       string
        partitions                 []
            partition_index        int32
            error_code             int16
            timestamp              int64
            offset                 int64
            leader_epoch           int32
"""),
    5,
)

CUT = Request(
    Schema("""
api 20005 Cut 0 flexible 0+
  request
    limit_rows            int64      = -1
    limit_bytes           int64      = -1
    topics                []
        topic_id          uuid       = zero
        name              string?    = null
        partitions        []
            partition     int32
            start_offset  int64      = -1
  response
    error_code            int16
    topics                []
        topic_id          uuid
        name              string?
        partitions        []
            partition     int32
            error_code    int16
            start_offset  int64
            end_offset    int64
            log_start     int64
            leader_epoch  int32
"""),
    0,
)

SPANS = Request(
    Schema("""
api 20006 Spans 0 flexible 0+
  request
    topic_id            uuid       = zero
    name                string?    = null
    partition           int32
    start_offset        int64
    end_offset          int64
  response
    error_code          int16
    next_offset         int64
    log_start           int64
    spans               []
        first_offset    int64
        last_offset     int64
        rank            int64
        producer_id     int64
        producer_epoch  int16
        number          int64
"""),
    0,
)
