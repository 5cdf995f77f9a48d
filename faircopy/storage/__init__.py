"""The only doors to disk, threads and time. Everything else takes them as arguments, so that tests can lie."""
