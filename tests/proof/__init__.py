"""The long proof: what takes hours, stage by stage, and a page of what came of it (docs/PROOF.md)."""
