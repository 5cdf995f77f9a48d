"""What a broker is told: one table of settings, and where they are read from."""
