"""Whose request it is when a reverse proxy stands in front of this server."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_HOME_PREFIX = 64
"""Bits of an IPv6 address that name a network; whoever has one address of it has them all."""


class TrustedProxies:
    """The proxies whose `X-Forwarded-For` is believed.

    Args:
        networks: Addresses, or networks in CIDR form.
    """

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ipaddress.ip_network(network, strict=False) for network in networks]

    def client(self, peer: str, forwarded: Sequence[str]) -> str:
        """The address that a request came from.

        Each proxy appends whom it talked to. Read from the end, the first address that is no proxy of ours
        is the client; what stands before it the client may have written itself.

        Args:
            peer: Address of the connection.
            forwarded: Values of the header, in order.
        """
        current = _address(peer)
        if current is None or not self._trusts(current):
            return peer
        for item in reversed(",".join(forwarded).split(",")):
            named = _address(item)
            if named is None:
                break
            current = named
            if not self._trusts(named):
                break
        return str(current)

    def _trusts(self, address: _Address) -> bool:
        return any(address in network for network in self._networks)


def limited_as(address: str) -> str:
    """The subject that the limits of an address count: itself, or the network of an IPv6 address."""
    parsed = _address(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed.packed, _HOME_PREFIX), strict=False))
    return address if parsed is None else str(parsed)


def _address(text: str) -> _Address | None:
    """An address, with a port or without; an IPv4 address in IPv6 clothes is an IPv4 address."""
    plain = text.strip()
    if plain.startswith("["):
        plain = plain[1:].partition("]")[0]
    elif plain.count(":") == 1:
        plain = plain.partition(":")[0]
    try:
        parsed = ipaddress.ip_address(plain.partition("%")[0])
    except ValueError:
        return None
    return (parsed.ipv4_mapped or parsed) if isinstance(parsed, ipaddress.IPv6Address) else parsed
