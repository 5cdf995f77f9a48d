"""HOST:PORT, as people write it, with an IPv6 host in brackets: `[::1]:9092`."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from faircopy.errors import FaircopyError

PORT_MAX = 65_535

_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[^\[\]]+)\]|(?P<host>[A-Za-z0-9._-]{1,253})):(?P<port>[0-9]{1,5})")


class BadAddress(FaircopyError):
    """A text is not HOST:PORT."""


class Address(NamedTuple):
    """A host, by name or number (IPv6 without brackets), and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Whether the host stands for all addresses of a machine, as 0.0.0.0 and :: do."""
        return set(self.host) <= set("0.:")


def parse_address(text: str) -> Address:
    """The address that a text names. Raises BadAddress."""
    found = _ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > PORT_MAX or not is_ipv6(found["ipv6"] or "::"):
        raise BadAddress(f"{text!r}: give HOST:PORT, such as 127.0.0.1:9092 or [::1]:9092")
    return Address(found["ipv6"] or found["host"], int(found["port"]))


def is_ipv6(host: str) -> bool:
    """Whether a host is an IPv6 address, without brackets."""
    try:
        return bool(ipaddress.IPv6Address(host))
    except ValueError:
        return False
