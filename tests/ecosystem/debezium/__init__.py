"""Debezium: the changes of a table of PostgreSQL in a topic."""
