"""Offsets of consumer groups: commit, fetch (in batches since KIP-709), delete.

In OffsetCommit, Kafka calls `generation_id` `generation_id_or_member_epoch` since version 9 (KIP-848).
"""

from __future__ import annotations

MESSAGES = """
api 8 OffsetCommit 2-8 flexible 8+
  request
    group_id                        string
    generation_id                   int32             = -1
    member_id                       string
    group_instance_id               string?    7+     = null
    retention_time_ms               int64      2-4    = -1
    topics                          []
        name                        string
        partitions                  []
            partition_index         int32
            committed_offset        int64
            committed_leader_epoch  int32      6+     = -1
            committed_metadata      string?           = null
  response
    throttle_time_ms                int32      3+     = 0
    topics                          []
        name                        string
        partitions                  []
            partition_index         int32
            error_code              int16

api 9 OffsetFetch 1-8 flexible 6+
  request
    groups                              []         8+
        group_id                        string
        topics                          []?
            name                        string
            partition_indexes           []int32
    group_id                            string     1-7
    topics                              []?2+      1-7
        name                            string
        partition_indexes               []int32
    require_stable                      bool       7+     = false
  response
    throttle_time_ms                    int32      3+     = 0
    groups                              []         8+
        group_id                        string
        topics                          []
            name                        string
            partitions                  []
                partition_index         int32
                committed_offset        int64
                committed_leader_epoch  int32             = -1
                metadata                string?
                error_code              int16
        error_code                      int16             = 0
    topics                              []         1-7
        name                            string
        partitions                      []
            partition_index             int32
            committed_offset            int64
            committed_leader_epoch      int32      5-7    = -1
            metadata                    string?
            error_code                  int16
    error_code                          int16      2-7    = 0

api 47 OffsetDelete 0
  request
    group_id                 string
    topics                   []
        name                 string
        partitions           []
            partition_index  int32
  response
    error_code               int16
    throttle_time_ms         int32             = 0
    topics                   []
        name                 string
        partitions           []
            partition_index  int32
            error_code       int16
"""
