"""One broker process: its parts, put together, started in order and stopped in order."""
