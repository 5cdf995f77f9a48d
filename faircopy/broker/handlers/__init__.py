"""What the broker does for each API: requests in, response bodies out."""
