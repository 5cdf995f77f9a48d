"""The founding of a catalogue: what is fixed when a data directory is created.

catalogue    shape         {setting: number}, numbers that hashes depend on
             cluster-id    the cluster's id, as clients see it
"""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

from faircopy.catalogue.journal import CATALOGUE_DIRECTORY
from faircopy.errors import FaircopyError
from faircopy.settings.table import FIELDS, Settings
from faircopy.storage.data_directory import DataDirectory
from faircopy.storage.paths import list_directory
from faircopy.storage.versioned_map import ABSENT, VersionedMap

SHAPE_KEY = "shape"
CLUSTER_ID_KEY = "cluster-id"
CLUSTER_ID_CHARS = 22  # as in Kafka
NAMES = ("metadata.journals", "offsets.partitions", "shards")


class ChangedShape(FaircopyError):
    """A setting that is fixed for the life of a data directory was changed."""


class LostState(FaircopyError):
    """The state store or the catalogue of a data directory is gone."""


def ensure_new(directory: DataDirectory, what_is_empty: str) -> None:
    """Raise LostState if the directory is not empty, although it would be if it were new: its topics would be
    taken for leftovers of deleted ones.
    """
    there = without_catalogue(directory.journal, directory.log)
    if there:
        raise LostState(
            f"{what_is_empty}, and {there[0]} is there: restore the data directory from a backup, or choose "
            f"another with --data-dir"
        )


def without_catalogue(journals: Path, logs: Path) -> list[Path]:
    """What is in a directory besides the catalogue: nothing, as long as that was not founded."""
    there = [*list_directory(journals), *list_directory(logs)]
    return [child for child in there if child.name != CATALOGUE_DIRECTORY]


def is_founded(catalogue: VersionedMap) -> bool:
    """Whether this catalogue's directory was created earlier."""
    return catalogue.get(SHAPE_KEY) is not None


async def found(catalogue: VersionedMap, settings: Settings, new_id: UUID) -> None:
    """Give a new catalogue the shape of the settings, and an id. Durable when done."""
    shape = {name: getattr(settings, FIELDS[name].name) for name in NAMES}
    await catalogue.transact(
        {SHAPE_KEY: ABSENT},
        {SHAPE_KEY: json.dumps(shape).encode(), CLUSTER_ID_KEY: new_id.hex[:CLUSTER_ID_CHARS].encode()},
    )


def cluster_id(catalogue: VersionedMap) -> str:
    """The cluster's id. The catalogue must be founded."""
    return stored(catalogue, CLUSTER_ID_KEY).decode()


def shape_of(catalogue: VersionedMap, settings: Settings) -> dict[str, int]:
    """The shape of a founded catalogue. A setting with its default value requests nothing. Raises
    ChangedShape.
    """
    shape: dict[str, int] = json.loads(stored(catalogue, SHAPE_KEY))
    for name, value in shape.items():
        wanted = getattr(settings, FIELDS[name].name)
        if wanted not in (value, FIELDS[name].default):
            raise ChangedShape(
                f"{name} is {wanted}, but {settings.data_dir} was created with {value}, which can't be "
                f"changed: leave the setting out, or choose another data directory"
            )
    return shape


def stored(catalogue: VersionedMap, key: str) -> bytes:
    """A value that is there since the founding."""
    there = catalogue.get(key)
    assert there is not None, f"the catalogue is founded, and has no {key}"
    return there.value
