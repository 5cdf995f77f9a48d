"""The shape of a data directory: numbers that hashes depend on, so that they are fixed when it is made.

cluster store    shape    {setting: number}
"""

from __future__ import annotations

import json
from collections.abc import Callable

from faircopy.cluster.store import ABSENT, ClusterStore
from faircopy.errors import FaircopyError
from faircopy.settings.table import FIELDS, Settings

KEY = "shape"
OF_BEFORE = {"shards": 1}
"""What a directory has that was made before there was this setting."""
NAMES = ("metadata.journals", "offsets.partitions", "shards")


class ChangedShape(FaircopyError):
    """A setting that is fixed for the life of a data directory was changed."""


async def shape_of(store: ClusterStore, settings: Settings, ensure_new: Callable[[], None]) -> dict[str, int]:
    """The shape of the directory of this store; one that is new gets that of the settings. A setting that has its
    default value asks for nothing. `ensure_new` raises what is wrong if the directory should have had one.

    Raises ChangedShape.
    """
    wanted = {name: getattr(settings, FIELDS[name].name) for name in NAMES}
    found = store.get(KEY)
    if found is None:
        ensure_new()
        await store.transact({KEY: ABSENT}, {KEY: json.dumps(wanted).encode()})
        return wanted
    shape: dict[str, int] = OF_BEFORE | json.loads(found.value)
    for name, value in shape.items():
        if wanted[name] not in (value, FIELDS[name].default):
            raise ChangedShape(
                f"{name} is {wanted[name]}, but {settings.data_dir} was made with {value}, which can't be changed: "
                f"leave the setting out, or choose another data directory"
            )
    return shape
