"""The shape of a data directory: numbers that hashes depend on, fixed when the directory is created.

cluster store    shape    {setting: number}
"""

from __future__ import annotations

import json

from faircopy.cluster.store import ABSENT, ClusterStore
from faircopy.errors import FaircopyError
from faircopy.settings.table import FIELDS, Settings

KEY = "shape"
NAMES = ("metadata.journals", "offsets.partitions", "shards")


class ChangedShape(FaircopyError):
    """A setting that is fixed for the life of a data directory was changed."""


async def shape_of(store: ClusterStore, settings: Settings) -> dict[str, int]:
    """The shape of this store's directory. A new directory gets the shape of the settings. A setting with its
    default value requests nothing. Raises ChangedShape.
    """
    wanted = {name: getattr(settings, FIELDS[name].name) for name in NAMES}
    found = store.get(KEY)
    if found is None:
        await store.transact({KEY: ABSENT}, {KEY: json.dumps(wanted).encode()})
        return wanted
    shape: dict[str, int] = json.loads(found.value)
    for name, value in shape.items():
        if wanted[name] not in (value, FIELDS[name].default):
            raise ChangedShape(
                f"{name} is {wanted[name]}, but {settings.data_dir} was created with {value}, which can't be "
                f"changed: leave the setting out, or choose another data directory"
            )
    return shape


def has_shape(store: ClusterStore) -> bool:
    """Whether this store's directory was created earlier."""
    return store.get(KEY) is not None
