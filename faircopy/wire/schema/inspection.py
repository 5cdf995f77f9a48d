"""faircopy's own APIs: a look inside a broker, as JSON, and the snapshot for a backup.

They are not advertised, since they are no part of Kafka's protocol.
"""

from __future__ import annotations

MESSAGES = """
api 20000 Inspect 0 flexible 0+
  request
    subject     string
  response
    error_code  int16
    document    string

api 20001 Backup 0 flexible 0+
  request
    step           string
  response
    error_code     int16
    error_message  string?  = null
    document       string
"""
