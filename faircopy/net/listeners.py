"""The addresses that a broker listens on: one, or several with names, each with the address that clients are
told.

A client is told the address of the listener that accepted it: the advertised one if there is one, otherwise
the address that the listener is bound to. If that one stands for all addresses of the machine, the client is
told the address that it connected to.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Any, NamedTuple

from faircopy.errors import FaircopyError
from faircopy.settings.table import BadSetting, Settings
from faircopy.wire.address import Address, BadAddress, parse_address

NAMELESS = "default"  # the name of a listener that was given none

_NAME = re.compile(r"[a-z0-9._-]{1,100}")


class CannotListen(FaircopyError):
    """The address can't be listened on."""


class Listener(NamedTuple):
    """One address to accept clients on; `advertised` is None if none was given."""

    name: str
    address: Address
    advertised: Address | None

    def address_for(self, local: tuple[Any, ...] | None) -> Address:
        """The address of this broker for a client, given the local end (host, port, ...) of a connection."""
        if self.advertised is not None:
            return self.advertised
        if local is None or not self.address.is_wildcard:
            return self.address
        return Address(without_ipv6_prefix(local[0]), local[1])


def without_ipv6_prefix(host: str) -> str:
    """The plain IPv4 host for an address like ::ffff:10.0.0.1, which a socket for IPv4 and IPv6 reports."""
    ip = ipaddress.ip_address(host)
    return str(getattr(ip, "ipv4_mapped", None) or host)


def parse_listeners(settings: Settings) -> tuple[Listener, ...]:
    """The listeners of a broker, at least one. Raises BadSetting."""
    addresses = parse_named(settings.listeners, "listeners")
    check_addresses(addresses)
    told = settings.advertised_listeners
    advertised = parse_named(told, "advertised.listeners") if told else {}
    for name, address in advertised.items():
        check_advertised(name, address, addresses)
    return tuple(Listener(name, address, advertised.get(name)) for name, address in addresses.items())


def parse_named(text: str, key: str) -> dict[str, Address]:
    """Addresses by name, from a comma-separated list of `HOST:PORT` or `NAME://HOST:PORT`.

    Names are in lower case; an address without a name gets NAMELESS.
    """
    found: dict[str, Address] = {}
    for part in text.split(","):
        before, slashes, after = part.strip().partition("://")
        name, address = (before.lower(), after) if slashes else (NAMELESS, before)
        if not _NAME.fullmatch(name):
            raise BadSetting(
                f"{key} is {text!r}: a name has letters, digits, dots, dashes and underscores only"
            )
        try:
            parsed = parse_address(address)
        except BadAddress as error:
            raise BadSetting(f"{key} is {error}") from error
        if name in found:
            raise BadSetting(f"{key} is {text!r}: two are named {name!r}. Give NAME://HOST:PORT for each")
        found[name] = parsed
    return found


def check_addresses(addresses: dict[str, Address]) -> None:
    """Raise BadSetting if two listeners are the same."""
    seen: set[Address] = set()
    for address in addresses.values():
        if address in seen and address.port:
            raise BadSetting(f"listeners: two are on {address}. Give each a port of its own")
        seen.add(address)


def check_advertised(name: str, address: Address, listeners: dict[str, Address]) -> None:
    """Raise BadSetting if clients could do nothing with an advertised address."""
    if name not in listeners:
        raise BadSetting(
            f"advertised.listeners has {address}, and no listener is named {name!r}: give NAME://HOST:PORT "
            f"with a name of listeners ({', '.join(listeners)})"
        )
    if not address.port:
        raise BadSetting(
            f"advertised.listeners has {address}: clients can't connect to port 0. Give the one they use"
        )
    if address.is_wildcard:
        raise BadSetting(
            f"advertised.listeners has {address}, and {address.host} stands for all addresses: give a host "
            f"that clients can reach, or leave it out, and each is told the address that it connected to"
        )


def bind(listener: Listener) -> tuple[Listener, socket.socket]:
    """Take the address to listen on. Raises CannotListen.

    The listener that is returned has the port that was taken.
    """
    host, port = listener.address
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise CannotListen(
            f"can't listen on {listener.address}: {error}. Check the host of --listen"
        ) from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise CannotListen(
            f"can't listen on {listener.address}: {error.strerror}. Another broker may be running there: "
            f"stop it, or choose another address with --listen HOST:PORT (port 0 takes a free one)"
        ) from error
    return listener._replace(address=Address(host, bound.getsockname()[1])), bound


def bind_all(listeners: tuple[Listener, ...]) -> list[tuple[Listener, socket.socket]]:
    """Take all addresses, or none. Raises CannotListen."""
    taken: list[tuple[Listener, socket.socket]] = []
    try:
        for listener in listeners:
            taken.append(bind(listener))
    except CannotListen:
        for _, bound in taken:
            bound.close()
        raise
    return taken
