"""Metadata, FindCoordinator, ApiVersions and DescribeCluster: what a client asks before all else."""

from __future__ import annotations

MESSAGES = """
api 3 Metadata 0-12 flexible 9+
  request
    topics                                 []?1+
        topic_id                           uuid       10+    = zero
        name                               string?10+
    allow_auto_topic_creation              bool       4+     = true
    include_cluster_authorized_operations  bool       8-10   = false
    include_topic_authorized_operations    bool       8+     = false
  response
    throttle_time_ms                       int32      3+     = 0
    brokers                                []
        node_id                            int32
        host                               string
        port                               int32
        rack                               string?    1+     = null
    cluster_id                             string?    2+     = null
    controller_id                          int32      1+     = -1
    topics                                 []
        error_code                         int16
        name                               string?12+
        topic_id                           uuid       10+    = zero
        is_internal                        bool       1+     = false
        partitions                         []
            error_code                     int16
            partition_index                int32
            leader_id                      int32
            leader_epoch                   int32      7+     = -1
            replica_nodes                  []int32
            isr_nodes                      []int32
            offline_replicas               []int32    5+     = []
        topic_authorized_operations        int32      8+     = -2147483648
    cluster_authorized_operations          int32      8-10   = -2147483648

api 10 FindCoordinator 0-4 flexible 3+
  request
    key                string     0-3
    key_type           int8       1+     = 0
    coordinator_keys   []string   4+
  response
    throttle_time_ms   int32      1+     = 0
    coordinators       []         4+
        key            string
        node_id        int32
        host           string
        port           int32
        error_code     int16
        error_message  string?           = null
    error_code         int16      0-3
    error_message      string?    1-3    = null
    node_id            int32      0-3
    host               string     0-3
    port               int32      0-3

api 18 ApiVersions 0-4 flexible 3+
  request
    client_software_name      string     3+
    client_software_version   string     3+
  response
    error_code                int16
    api_keys                  []
        api_key               int16
        min_version           int16
        max_version           int16
    throttle_time_ms          int32      1+     = 0
    supported_features        []         3+     tag 0 = []
        name                  string
        min_version           int16
        max_version           int16
    finalized_features_epoch  int64      3+     tag 1 = -1
    finalized_features        []         3+     tag 2 = []
        name                  string
        max_version_level     int16
        min_version_level     int16
    zk_migration_ready        bool       3+     tag 3 = false

api 60 DescribeCluster 0-1 flexible 0+
  request
    include_cluster_authorized_operations  bool              = false
    endpoint_type                          int8       1+     = 1
  response
    throttle_time_ms                       int32             = 0
    error_code                             int16
    error_message                          string?           = null
    endpoint_type                          int8       1+     = 1
    cluster_id                             string
    controller_id                          int32             = -1
    brokers                                []
        broker_id                          int32
        host                               string
        port                               int32
        rack                               string?           = null
    cluster_authorized_operations          int32             = -2147483648
"""
