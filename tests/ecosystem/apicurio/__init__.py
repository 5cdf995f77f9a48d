"""Apicurio Registry, which keeps its schemas in a topic."""
