"""SASL: choose a mechanism, then exchange its opaque tokens (KIP-152, KIP-368)."""

from __future__ import annotations

MESSAGES = """
api 17 SaslHandshake 0-1
  request
    mechanism   string
  response
    error_code  int16
    mechanisms  []string

api 36 SaslAuthenticate 0-2 flexible 2+
  request
    auth_bytes           bytes
  response
    error_code           int16
    error_message        string?           = null
    auth_bytes           bytes
    session_lifetime_ms  int64      1+     = 0
"""
