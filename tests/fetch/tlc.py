"""TLC, which checks the models of docs/models."""

from __future__ import annotations

from pathlib import Path

from bench.systems.maven import jars_of

MODELS = Path(__file__).parents[2] / "docs" / "models"
TLC = jars_of("tlc", MODELS / "pom.xml")
