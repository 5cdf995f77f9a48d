"""Addresses of listeners: how they are read, and what a client is told."""

from __future__ import annotations

import pytest

from faircopy.client.connection import BrokerConnection
from faircopy.client.errors import ConnectionFailed
from faircopy.net.listeners import Listener, parse_listeners
from faircopy.settings.sources import load_settings
from faircopy.settings.table import BadSetting
from faircopy.wire.address import Address, BadAddress, parse_address
from tests.unit.net.kubernetes import KUBERNETES

# -- addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["127.0.0.1:9092", "log1.example.org:1", "[::1]:65535", "[fe80::1%eth0]:9092"]
)
def test_an_address_is_printed_as_it_is_read(text: str) -> None:
    assert str(parse_address(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "nowhere", ":9092", "host:", "host:http", "host:65536", "host:-1", "host:٣", "::1:9092", "[::1]",
     "[x]:1", "[::1:9092", "a b:1", "http://host:1", "host/x:1", "host:1:2", "ho\x1bst:1"],
)  # fmt: skip
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BadAddress, match="give HOST:PORT"):
        parse_address(text)
    with pytest.raises(ConnectionFailed, match="give HOST:PORT"):
        BrokerConnection(text)


# -- settings ------------------------------------------------------------------------------------------------


def listeners(listen: str, advertised: str = "") -> tuple[Listener, ...]:
    return parse_listeners(
        load_settings(overrides=[f"listeners={listen}", f"advertised.listeners={advertised}"])
    )


def test_one_listener_needs_no_name() -> None:
    assert listeners("h:1") == (Listener("default", Address("h", 1), None),)
    assert listeners("h:1", "log1:2") == (Listener("default", Address("h", 1), Address("log1", 2)),)


def test_several_listeners_have_names() -> None:
    found = listeners("internal://0.0.0.0:9092, EXTERNAL://[::]:9094", "external://log1:19094")
    assert found == (
        Listener("internal", Address("0.0.0.0", 9092), None),
        Listener("external", Address("::", 9094), Address("log1", 19094)),
    )


@pytest.mark.parametrize(
    ("listen", "advertised", "message"),
    [
        ("", "", "give HOST:PORT"),
        ("h:1,", "", "give HOST:PORT"),
        ("h:1", "nowhere", "advertised.listeners is 'nowhere': give HOST:PORT"),
        ("h:1", "log1:0", "port 0"),
        ("h:1", "0.0.0.0:9092", "stands for all addresses"),
        ("h:1", "[::]:9092", "stands for all addresses"),
        ("h:1", "0:9092", "stands for all addresses"),
        ("h:1", "other://log1:1", "no listener is named 'other'"),
        ("a://h:1,b://h:2", "log1:1", "no listener is named 'default'"),
        ("a://h:1,A://h:2", "", "two are named 'a'"),
        ("h:1,h:2", "", "two are named 'default'"),
        ("a://h:1,b://h:1", "", "two are on h:1"),
        ("a://h:1", "a://x:1,a://y:1", "two are named 'a'"),
        ("a b://h:1", "", "a name has letters, digits"),
    ],
)
def test_listeners_that_can_not_be_are_refused(listen: str, advertised: str, message: str) -> None:
    with pytest.raises(BadSetting, match=message.replace("[", r"\[")):
        listeners(listen, advertised)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0"])
def test_all_addresses_are_told_as_the_one_that_a_client_came_to(host: str) -> None:
    listener = Listener("default", Address(host, 9092), None)
    assert listener.address_for(("10.0.0.7", 9092)) == Address("10.0.0.7", 9092)
    assert listener.address_for(("::ffff:10.0.0.7", 9092, 0, 0)) == Address("10.0.0.7", 9092)
    assert listener.address_for(("2001:db8::7", 9092, 0, 0)) == Address("2001:db8::7", 9092)
    assert listener._replace(advertised=Address("log1", 1)).address_for(("10.0.0.7", 9092)) == Address(
        "log1", 1
    )


# -- variables of other programs -----------------------------------------------------------------------------


def test_variables_of_kubernetes_services_are_no_settings() -> None:
    assert load_settings(environment=KUBERNETES) == load_settings()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("FAIRCOPY_PORT", "9092"),
        ("FAIRCOPY_LISTEN_PORT", "9092"),
        ("FAIRCOPY_LISTENERS_PORT", "9092"),
        ("FAIRCOPY_SERVICE", "x"),
        ("FAIRCOPY_PORT_TCP", "9092"),
        ("FAIRCOPY_HOST", "127.0.0.1"),
    ],
)
def test_a_mistyped_variable_is_still_refused(variable: str, value: str) -> None:
    with pytest.raises(BadSetting, match="unknown setting"):
        load_settings(environment=KUBERNETES | {variable: value})
