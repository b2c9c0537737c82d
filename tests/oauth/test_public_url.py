"""The address that programs are told."""

from __future__ import annotations

import pytest

from hivemem.errors import InvalidInput
from hivemem.settings import Settings


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("", ()),
        ("https://memory.example.org", ("memory.example.org",)),
        ("https://memory.example.org/", ("memory.example.org",)),
        ("http://nas:8477", ("nas:8477",)),
        ("http://[fd00::1]:8477", ("[fd00::1]:8477",)),
    ],
)
def test_its_host_is_one_of_ours(url: str, hosts: tuple[str, ...]) -> None:
    assert Settings(public_url=url).public_hosts == hosts


@pytest.mark.parametrize(
    "url",
    [
        "memory.example.org",
        "ftp://memory.example.org",
        "https://memory.example.org/hivemem",
        "https://memory.example.org?x",
        "https://memory.example.org#x",
        "https://me@memory.example.org",
        "https://memory.example.org:port",
        "https://[::1",
        "https://",
        'https://memory.example.org"',
    ],
)
def test_it_is_scheme_and_host_only(url: str) -> None:
    with pytest.raises(InvalidInput, match="public_url"):
        Settings(public_url=url)
