"""faircopy's own API: a look inside a broker, as JSON. Not advertised, since it is no part of Kafka's protocol."""

from __future__ import annotations

MESSAGES = """
api 20000 Inspect 0 flexible 0+
  request
    subject     string
  response
    error_code  int16
    document    string
"""
