"""The testing library: a broker for tests, its faults, its fixtures, with clients of three libraries."""
