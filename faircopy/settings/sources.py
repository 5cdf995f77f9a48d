"""The sources of settings: defaults, a TOML file, FAIRCOPY_* variables and --set. Later ones override earlier
ones.

The setting `journal.segment.bytes` is the variable FAIRCOPY_JOURNAL_SEGMENT_BYTES. In TOML it may be written
flat ("journal.segment.bytes" = 1) or nested ([journal.segment] bytes = 1).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from faircopy.settings.table import FIELDS, BadSetting, Settings, check, parse

ENVIRONMENT_PREFIX = "FAIRCOPY_"

# Kubernetes gives each container such variables for each service of its namespace, as Docker did for links.
# The variables of a service `faircopy` or `faircopy-ui` look like settings. The name FAIRCOPY_PORT alone does
# not decide it, so the value is checked too.
SERVICE_VARIABLE = re.compile(
    r"\w+_SERVICE_(HOST|PORT(_\w+)?)|\w+_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?"
)
SERVICE_PORT_VARIABLE = re.compile(r"\w+_PORT")
SERVICE_URL = re.compile(r"(tcp|udp|sctp)://")
OTHER_VARIABLES = {
    "FAIRCOPY_BROKER",
    "FAIRCOPY_REQUIRE_ALL",
    "FAIRCOPY_SEED",
}  # the commands' and the tests' own


def load_settings(
    config: Path | None = None,
    environment: Mapping[str, str] | None = None,
    overrides: Iterable[str] = (),
    **flags: str | int | None,
) -> Settings:
    """Settings from all sources, later ones overriding earlier ones; `flags` are fields set by command line
    options.

    Raises BadSetting.
    """
    values = read_toml(config) if config is not None else {}
    values |= from_variables(environment or {})
    values |= from_overrides(overrides)
    values |= {name.replace("_", "."): given for name, given in flags.items() if given is not None}
    return Settings(**{FIELDS[key].name: value for key, value in values.items()})


def from_variables(environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings in variables of the environment. Raises BadSetting."""
    values = {}
    for name, text in environment.items():
        if is_for_settings(name, text):
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
            values[key] = parse(key, text, f"variable {name}")
    return values


def from_overrides(overrides: Iterable[str]) -> dict[str, Any]:
    """The settings in texts such as `topic.partitions=3`. Raises BadSetting."""
    values = {}
    for override in overrides:
        key, _, text = override.partition("=")
        values[key.strip()] = parse(key.strip(), text, f"--set {override}")
    return values


def is_for_settings(variable: str, value: str) -> bool:
    """Whether a variable of the environment is meant as a setting; then it must name an existing one."""
    if not variable.startswith(ENVIRONMENT_PREFIX) or variable in OTHER_VARIABLES:
        return False
    is_port = SERVICE_PORT_VARIABLE.fullmatch(variable) and SERVICE_URL.match(value)
    return not (is_port or SERVICE_VARIABLE.fullmatch(variable))


def read_toml(path: Path) -> dict[str, Any]:
    """The settings in a TOML file. Raises BadSetting."""
    try:
        return {key: check(key, value, str(path)) for key, value in flatten(tomllib.loads(path.read_text()))}
    except OSError as error:
        raise BadSetting(f"can't read {path}: {error.strerror}. Give another file with --config") from error
    except (ValueError, RecursionError) as error:
        raise BadSetting(f"{path} is not TOML, or too complex to read: {error}") from error


def flatten(document: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Nested tables as dotted keys."""
    for key, value in document.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
