"""Where the arbiter is, as settings say it; and the names of sets. Pure.

lmdb:DIRECTORY                        for processes of one machine
etcd://HOST:PORT,HOST:PORT,...        for several machines
etcds://HOST:PORT,HOST:PORT,...       the same over TLS
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from faircopy.settings.table import BadSetting, Settings
from faircopy.wire.address import Address, BadAddress, parse_address

Kind = Literal["lmdb", "etcd"]
FORMS = "lmdb:DIRECTORY, etcd://HOST:PORT,... or etcds://HOST:PORT,... (TLS)"
NAME_CHARACTERS_MAX = 100
ARE_FOR_TLS = ("tls_ca_file", "tls_cert_file", "tls_key_file")
ARE_FOR_ETCD = ("user", "password_file", *ARE_FOR_TLS)

_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{NAME_CHARACTERS_MAX}}}")


class ArbiterAddress(NamedTuple):
    """Where the arbiter is: a directory for kind lmdb, or the members of an etcd."""

    kind: Kind
    directory: str = ""
    hosts: tuple[Address, ...] = ()
    is_tls: bool = False

    def __str__(self) -> str:
        if self.kind == "lmdb":
            return f"lmdb:{self.directory}"
        return f"etcd{'s' * self.is_tls}://{','.join(map(str, self.hosts))}"


class ArbiterOptions(NamedTuple):
    """The settings of the same names, which begin with `arbiter_` there."""

    address: ArbiterAddress
    user: str = ""
    password_file: str = ""
    tls_ca_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""


def arbiter_options(settings: Settings) -> ArbiterOptions | None:
    """The options that the settings give, all of them checked, as is the name of the set. None if a broker
    leads by itself. Raises BadSetting.
    """
    values = {name: getattr(settings, f"arbiter_{name}") for name in ARE_FOR_ETCD}
    if not settings.arbiter:
        needless = {"replica.set": settings.replica_set} | {
            setting_of(name): value for name, value in values.items()
        }
        for setting, value in needless.items():
            if value:
                raise BadSetting(f"{setting} is set, and arbiter is not: give arbiter as {FORMS}, or neither")
        return None
    options = ArbiterOptions(parse_arbiter(settings.arbiter), **values)
    check_options(options)
    check_set_name(settings.replica_set)
    return options


def parse_arbiter(text: str) -> ArbiterAddress:
    """The address that a value of the setting `arbiter` means. Raises BadSetting."""
    kind, colon, rest = text.partition(":")
    if kind == "lmdb" and colon:
        if not rest or "\0" in rest or rest.startswith("//"):
            raise BadSetting(
                f"arbiter is {text!r}, which has no directory: give lmdb:DIRECTORY, such as "
                f"lmdb:/var/lib/faircopy/arbiter"
            )
        return ArbiterAddress("lmdb", directory=rest)
    if kind in ("etcd", "etcds") and rest.startswith("//"):
        hosts = parse_hosts(rest.removeprefix("//"))
        return ArbiterAddress("etcd", hosts=hosts, is_tls=kind == "etcds")
    raise BadSetting(f"arbiter begins with {text[:8]!r}, which is nothing that it can be: give {FORMS}")


def parse_hosts(text: str) -> tuple[Address, ...]:
    """The members of an etcd. Raises BadSetting."""
    if "@" in text:  # the text may have a password, which is not to be shown
        raise BadSetting(
            "arbiter has a user in its address: give the user as arbiter.user, and a file with the password "
            "as arbiter.password.file"
        )
    try:
        hosts = tuple(parse_address(each.strip()) for each in text.split(","))
    except BadAddress as error:
        raise BadSetting(f"arbiter has an address of etcd that is none: {error}") from error
    for host in hosts:
        if host.port == 0 or host.is_wildcard:
            raise BadSetting(f"arbiter has {host}, to which nobody can connect: give HOST:PORT of a member")
        if hosts.count(host) > 1:
            raise BadSetting(f"arbiter has {host} twice: give each member of etcd once")
    return hosts


def check_options(options: ArbiterOptions) -> None:
    """Raises BadSetting if settings contradict each other."""
    address = options.address
    if address.kind == "lmdb":
        ensure_unset(options, ARE_FOR_ETCD, f"with arbiter {address}: it is for etcd. Leave it out")
    elif not address.is_tls:
        ensure_unset(options, ARE_FOR_TLS, "without TLS: give arbiter as etcds://..., or leave it out")
    ensure_both(options, "tls_cert_file", "tls_key_file")
    ensure_both(options, "user", "password_file")


def ensure_unset(options: ArbiterOptions, names: tuple[str, ...], why: str) -> None:
    """Raises BadSetting if one of these is set."""
    for name in names:
        if getattr(options, name):
            raise BadSetting(f"{setting_of(name)} is set {why}")


def ensure_both(options: ArbiterOptions, one: str, other: str) -> None:
    """Raises BadSetting if one of two is set, and the other is not."""
    for name, missing in ((one, other), (other, one)):
        if getattr(options, name) and not getattr(options, missing):
            raise BadSetting(
                f"{setting_of(name)} is set, and {setting_of(missing)} is not: give both or none"
            )


def setting_of(name: str) -> str:
    """The setting that a field of the options has its value from."""
    return f"arbiter.{name.replace('_', '.')}"


def check_set_name(name: str) -> str:
    """Return the name of a set, if it can be a part of keys and a directory. Raises BadSetting."""
    if not name:
        raise BadSetting("replica.set is empty, and arbiter is set: give the set a name, such as orders")
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise BadSetting(
            f"replica.set is {name!r}: give at most {NAME_CHARACTERS_MAX} letters, digits, dots, dashes and "
            f"underscores, and not only one or two dots"
        )
    return name
