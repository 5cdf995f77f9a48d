"""The only access to disk, threads and time. All other code takes them as arguments, so that tests can
replace them."""
