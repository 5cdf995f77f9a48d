"""Tests of what the benchmark measures with."""
