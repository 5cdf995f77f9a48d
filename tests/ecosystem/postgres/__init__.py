"""PostgreSQL: a server of a test's own, and a session of SQL with it."""
