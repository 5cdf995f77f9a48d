"""What a broker's settings say of replication."""

from __future__ import annotations

from pathlib import Path

from faircopy.replication.proof import SECRET_BYTES_MIN
from faircopy.settings.table import BadSetting, Settings
from faircopy.wire.address import Address, BadAddress, parse_address

MAKE_ONE = "Make it with `openssl rand -hex 32 > FILE`, and give all brokers of the set the same"


def secret_of(settings: Settings) -> bytes:
    """What the brokers of the set share, without white space around it. Raises BadSetting."""
    name = settings.replication_secret_file
    if not name:
        raise BadSetting(
            f"replication.secret.file is empty, and replica set {settings.replica_set} has several replicas: "
            f"give a file. {MAKE_ONE}"
        )
    try:
        secret = Path(name).read_bytes().strip()
    except OSError as error:
        raise BadSetting(
            f"replication.secret.file is {name}, which can't be read ({error.strerror}). {MAKE_ONE}"
        ) from error
    if len(secret) < SECRET_BYTES_MIN:
        raise BadSetting(
            f"replication.secret.file is {name}, which has {len(secret)} bytes: it needs at least "
            f"{SECRET_BYTES_MIN}. {MAKE_ONE}"
        )
    return secret


def link_address(settings: Settings) -> Address:
    """Where a follower waits for its leader. Raises BadSetting."""
    text = settings.replication_listener
    if not text:
        raise BadSetting(
            f"replication.listener is empty, and broker {settings.node_id} follows the leader of replica set "
            f"{settings.replica_set}: give HOST:PORT of this machine, at which the leader finds it"
        )
    try:
        address = parse_address(text)
    except BadAddress as error:
        raise BadSetting(f"replication.listener is {error}") from error
    if address.is_wildcard:
        raise BadSetting(
            f"replication.listener is {text}, at which no leader would find the broker: give an address of "
            f"this machine"
        )
    return address


def ensure_can_share(settings: Settings) -> None:
    """Raise BadSetting if a set of several replicas can't be as these settings say."""
    if settings.durability != "fsync":
        raise BadSetting(
            f"durability is {settings.durability}, and replica set {settings.replica_set} has several "
            f"replicas: as yet such a set needs fsync, since histories that part can't be put together again"
        )
    if settings.plain_enabled:
        raise BadSetting(
            f"plain.enabled is true, and replica set {settings.replica_set} has several replicas, which "
            f"can't have plain tables yet: another leader's own table would lack what this one has "
            f"published. Start all of them with --set plain.enabled=false"
        )
