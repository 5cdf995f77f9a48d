"""Transactions (KIP-98) and what shows them to administrators (KIP-664).

AddPartitionsToTxn stops at version 3: from 4 on it is spoken by brokers only, and Kafka's schema therefore
prefixes these fields with `v3_and_below`. `duration_filter` and `last_timestamp` are in milliseconds.
"""

from __future__ import annotations

MESSAGES = """
api 22 InitProducerId 0-5 flexible 2+
  request
    transactional_id        string?
    transaction_timeout_ms  int32
    producer_id             int64      3+     = -1
    producer_epoch          int16      3+     = -1
  response
    throttle_time_ms        int32             = 0
    error_code              int16
    producer_id             int64             = -1
    producer_epoch          int16

api 24 AddPartitionsToTxn 0-3 flexible 3+
  request
    transactional_id         string
    producer_id              int64
    producer_epoch           int16
    topics                   []
        name                 string
        partitions           []int32
  response
    throttle_time_ms         int32             = 0
    results                  []
        name                 string
        partitions           []
            partition_index  int32
            error_code       int16

api 25 AddOffsetsToTxn 0-4 flexible 3+
  request
    transactional_id  string
    producer_id       int64
    producer_epoch    int16
    group_id          string
  response
    throttle_time_ms  int32             = 0
    error_code        int16

api 26 EndTxn 0-5 flexible 3+
  request
    transactional_id  string
    producer_id       int64
    producer_epoch    int16
    committed         bool
  response
    throttle_time_ms  int32             = 0
    error_code        int16
    producer_id       int64      5+     = -1
    producer_epoch    int16      5+     = -1

api 28 TxnOffsetCommit 0-5 flexible 3+
  request
    transactional_id                string
    group_id                        string
    producer_id                     int64
    producer_epoch                  int16
    generation_id                   int32      3+     = -1
    member_id                       string     3+     = ""
    group_instance_id               string?    3+     = null
    topics                          []
        name                        string
        partitions                  []
            partition_index         int32
            committed_offset        int64
            committed_leader_epoch  int32      2+     = -1
            committed_metadata      string?           = null
  response
    throttle_time_ms                int32             = 0
    topics                          []
        name                        string
        partitions                  []
            partition_index         int32
            error_code              int16

api 61 DescribeProducers 0 flexible 0+
  request
    topics                                []
        name                              string
        partition_indexes                 []int32
  response
    throttle_time_ms                      int32             = 0
    topics                                []
        name                              string
        partitions                        []
            partition_index               int32
            error_code                    int16
            error_message                 string?           = null
            active_producers              []
                producer_id               int64
                producer_epoch            int32
                last_sequence             int32             = -1
                last_timestamp            int64             = -1
                coordinator_epoch         int32
                current_txn_start_offset  int64             = -1

api 65 DescribeTransactions 0 flexible 0+
  request
    transactional_ids              []string
  response
    throttle_time_ms               int32             = 0
    transaction_states             []
        error_code                 int16
        transactional_id           string
        transaction_state          string
        transaction_timeout_ms     int32
        transaction_start_time_ms  int64
        producer_id                int64
        producer_epoch             int16
        topics                     []
            topic                  string
            partitions             []int32

api 66 ListTransactions 0-1 flexible 0+
  request
    state_filters          []string
    producer_id_filters    []int64
    duration_filter        int64      1+     = -1
  response
    throttle_time_ms       int32             = 0
    error_code             int16
    unknown_state_filters  []string
    transaction_states     []
        transactional_id   string
        producer_id        int64
        transaction_state  string
"""
