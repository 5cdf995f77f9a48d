"""The only access to disk, threads and time. Other code gets them as arguments, so tests can fake them."""
