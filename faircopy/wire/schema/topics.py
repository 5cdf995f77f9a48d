"""Topics and the records in them: create, delete, widen, shorten, measure."""

from __future__ import annotations

MESSAGES = """
api 19 CreateTopics 2-7 flexible 5+
  request
    topics                       []
        name                     string
        num_partitions           int32
        replication_factor       int16
        assignments              []
            partition_index      int32
            broker_ids           []int32
        configs                  []
            name                 string
            value                string?
    timeout_ms                   int32             = 60000
    validate_only                bool              = false
  response
    throttle_time_ms             int32             = 0
    topics                       []
        name                     string
        topic_id                 uuid       7+     = zero
        error_code               int16
        error_message            string?           = null
        topic_config_error_code  int16      5+     tag 0 = 0
        num_partitions           int32      5+     = -1
        replication_factor       int16      5+     = -1
        configs                  []?        5+
            name                 string
            value                string?
            read_only            bool
            config_source        int8              = -1
            is_sensitive         bool

api 20 DeleteTopics 1-6 flexible 4+
  request
    topics             []         6+
        name           string?           = null
        topic_id       uuid              = zero
    topic_names        []string   1-5
    timeout_ms         int32
  response
    throttle_time_ms   int32             = 0
    responses          []
        name           string?6+
        topic_id       uuid       6+     = zero
        error_code     int16
        error_message  string?    5+     = null

api 37 CreatePartitions 0-3 flexible 2+
  request
    topics              []
        name            string
        count           int32
        assignments     []?
            broker_ids  []int32
    timeout_ms          int32
    validate_only       bool              = false
  response
    throttle_time_ms    int32             = 0
    results             []
        name            string
        error_code      int16
        error_message   string?           = null

api 21 DeleteRecords 0-2 flexible 2+
  request
    topics                   []
        name                 string
        partitions           []
            partition_index  int32
            offset           int64
    timeout_ms               int32
  response
    throttle_time_ms         int32             = 0
    topics                   []
        name                 string
        partitions           []
            partition_index  int32
            low_watermark    int64
            error_code       int16

api 35 DescribeLogDirs 1-4 flexible 2+
  request
    topics                       []?
        topic                    string
        partitions               []int32
  response
    throttle_time_ms             int32             = 0
    error_code                   int16      3+
    results                      []
        error_code               int16
        log_dir                  string
        topics                   []
            name                 string
            partitions           []
                partition_index  int32
                partition_size   int64
                offset_lag       int64
                is_future_key    bool
        total_bytes              int64      4+     = -1
        usable_bytes             int64      4+     = -1
"""
