"""What goes wrong on request: only in a broker that was started for tests (`faircopy start --ephemeral`).

`faircopy/testing` asks for it, and docs/TESTING.md is for those who use that.
"""
