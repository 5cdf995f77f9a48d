"""Programs of Spring: their jars, their sources."""
