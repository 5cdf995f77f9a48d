"""Configurations of topics and brokers: describe, replace, change one by one (KIP-339)."""

from __future__ import annotations

MESSAGES = """
api 32 DescribeConfigs 1-4 flexible 4+
  request
    resources               []
        resource_type       int8
        resource_name       string
        configuration_keys  []string?
    include_synonyms        bool              = false
    include_documentation   bool       3+     = false
  response
    throttle_time_ms        int32             = 0
    results                 []
        error_code          int16
        error_message       string?           = null
        resource_type       int8
        resource_name       string
        configs             []
            name            string
            value           string?
            read_only       bool
            config_source   int8              = -1
            is_sensitive    bool
            synonyms        []
                name        string
                value       string?
                source      int8
            config_type     int8       3+     = 0
            documentation   string?    3+     = null

api 33 AlterConfigs 0-2 flexible 2+
  request
    resources          []
        resource_type  int8
        resource_name  string
        configs        []
            name       string
            value      string?
    validate_only      bool              = false
  response
    throttle_time_ms   int32             = 0
    responses          []
        error_code     int16
        error_message  string?           = null
        resource_type  int8
        resource_name  string

api 44 IncrementalAlterConfigs 0-1 flexible 1+
  request
    resources                 []
        resource_type         int8
        resource_name         string
        configs               []
            name              string
            config_operation  int8
            value             string?
    validate_only             bool              = false
  response
    throttle_time_ms          int32             = 0
    responses                 []
        error_code            int16
        error_message         string?           = null
        resource_type         int8
        resource_name         string
"""
