"""Consumer groups, the classic protocol: membership (KIP-62, KIP-345, KIP-394), and what administrators
ask."""

from __future__ import annotations

MESSAGES = """
api 11 JoinGroup 0-7 flexible 6+
  request
    group_id               string
    session_timeout_ms     int32
    rebalance_timeout_ms   int32      1+     = -1
    member_id              string
    group_instance_id      string?    5+     = null
    protocol_type          string
    protocols              []
        name               string
        metadata           bytes
  response
    throttle_time_ms       int32      2+     = 0
    error_code             int16
    generation_id          int32             = -1
    protocol_type          string?    7+     = null
    protocol_name          string?7+
    leader                 string
    member_id              string
    members                []
        member_id          string
        group_instance_id  string?    5+     = null
        metadata           bytes

api 12 Heartbeat 0-4 flexible 4+
  request
    group_id           string
    generation_id      int32
    member_id          string
    group_instance_id  string?    3+     = null
  response
    throttle_time_ms   int32      1+     = 0
    error_code         int16

api 13 LeaveGroup 0-4 flexible 4+
  request
    group_id               string
    members                []         3+
        member_id          string
        group_instance_id  string?           = null
    member_id              string     0-2
  response
    throttle_time_ms       int32      1+     = 0
    error_code             int16
    members                []         3+
        member_id          string
        group_instance_id  string?           = null
        error_code         int16

api 14 SyncGroup 0-5 flexible 4+
  request
    group_id           string
    generation_id      int32
    member_id          string
    group_instance_id  string?    3+     = null
    protocol_type      string?    5+     = null
    protocol_name      string?    5+     = null
    assignments        []
        member_id      string
        assignment     bytes
  response
    throttle_time_ms   int32      1+     = 0
    error_code         int16
    protocol_type      string?    5+     = null
    protocol_name      string?    5+     = null
    assignment         bytes

api 15 DescribeGroups 0-5 flexible 5+
  request
    groups                         []string
    include_authorized_operations  bool       3+     = false
  response
    throttle_time_ms               int32      1+     = 0
    groups                         []
        error_code                 int16
        group_id                   string
        group_state                string
        protocol_type              string
        protocol_data              string
        members                    []
            member_id              string
            group_instance_id      string?    4+     = null
            client_id              string
            client_host            string
            member_metadata        bytes
            member_assignment      bytes
        authorized_operations      int32      3+     = -2147483648

api 16 ListGroups 0-5 flexible 3+
  request
    states_filter      []string   4+
    types_filter       []string   5+
  response
    throttle_time_ms   int32      1+     = 0
    error_code         int16
    groups             []
        group_id       string
        protocol_type  string
        group_state    string     4+
        group_type     string     5+

api 42 DeleteGroups 0-2 flexible 2+
  request
    groups_names      []string
  response
    throttle_time_ms  int32             = 0
    results           []
        group_id      string
        error_code    int16
"""
