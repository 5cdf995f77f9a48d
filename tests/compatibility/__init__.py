"""Makes docs/COMPATIBILITY.md from the code: what of Kafka's protocol, settings and programs works here."""
