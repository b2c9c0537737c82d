"""Whose word on a caller's address is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from hivemem.errors import InvalidInput
from hivemem.settings import load_settings
from hivemem.surfaces.rest.proxies import TrustedProxies, limited_as


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        # Nobody but a trusted proxy is believed.
        ("198.51.100.1", ["203.0.113.9"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        # What the client claims stands first, what the proxies saw last.
        ("10.0.0.1", ["6.6.6.6, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["6.6.6.6", "203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        # What is no address ends the search at the last proxy that was seen.
        ("10.0.0.1", ["203.0.113.9, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9, evil, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("::ffff:10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
        ("fd00::1", ["203.0.113.9"], "203.0.113.9"),
        ("not an address", ["203.0.113.9"], "not an address"),
    ],
)
def test_the_first_address_from_the_end_that_is_no_proxy(
    peer: str, forwarded: list[str], client: str
) -> None:
    assert TrustedProxies(["10.0.0.0/8", "fd00::1"]).client(peer, forwarded) == client


def test_without_a_setting_nobody_is_believed() -> None:
    assert TrustedProxies([]).client("127.0.0.1", ["203.0.113.9"]) == "127.0.0.1"


def test_an_ipv6_network_is_one_caller() -> None:
    assert limited_as("2001:db8:1:2:3::4") == limited_as("2001:db8:1:2::9") == "2001:db8:1:2::/64"
    assert limited_as("2001:db8:1:3::4") != limited_as("2001:db8:1:2::4")
    assert limited_as("::ffff:192.0.2.1") == limited_as("192.0.2.1") == "192.0.2.1"
    assert limited_as("") == ""


@pytest.mark.parametrize("value", ["proxy.example.org", "10.0.0.0/40", "*"])
def test_proxies_are_addresses(tmp_path: Path, value: str) -> None:
    with pytest.raises(InvalidInput, match="trusted_proxies"):
        load_settings({"data_dir": str(tmp_path), "trusted_proxies": value}, {})
