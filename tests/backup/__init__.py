"""Backups: of brokers under load, broken off, damaged, and put back."""
