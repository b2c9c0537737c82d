"""Small whole numbers for the keys of a graph, so that a search works on arrays instead of strings."""

from __future__ import annotations

from collections.abc import Iterable


class NodeNumbers:
    """One number for each key that a part of the index holds.

    Words, vectors and relationships are kept apart but name a node by the same number, so that what one
    of them finds can be looked up in the others without a string. A number is given away again once no
    part holds it: numbers mean nothing beyond the lock of the index, and order nothing.
    """

    def __init__(self) -> None:
        self._number_of: dict[str, int] = {}
        self._keys: list[str] = []
        self._holders = bytearray()
        self._free: list[int] = []
        self._characters = 0

    def __len__(self) -> int:
        return len(self._number_of)

    @property
    def room(self) -> int:
        """All numbers are below this."""
        return len(self._keys)

    @property
    def size_bytes(self) -> int:
        """Memory held, estimated: dict and list slots, and the strings."""
        return 160 * len(self._keys) + self._characters

    def find(self, key: str) -> int | None:
        """The number of a key, None when no part holds it."""
        return self._number_of.get(key)

    def take(self, key: str) -> int:
        """The number of a key for one more part of the index, which gives it back with `release`."""
        number = self._number_of.get(key)
        if number is None:
            if self._free:
                number = self._free.pop()
                self._keys[number] = key
            else:
                number = len(self._keys)
                self._keys.append(key)
                self._holders.append(0)
            self._number_of[key] = number
            self._characters += len(key)
        self._holders[number] += 1
        return number

    def release(self, number: int) -> None:
        """Say that one part of the index does not hold the number any more."""
        self._holders[number] -= 1
        if not self._holders[number]:
            key = self._keys[number]
            del self._number_of[key]
            self._keys[number] = ""
            self._free.append(number)
            self._characters -= len(key)

    def key(self, number: int) -> str:
        """The key that a part holds under this number."""
        return self._keys[number]

    def keys(self, numbers: Iterable[int]) -> list[str]:
        """The keys of several numbers, in their order."""
        return list(map(self._keys.__getitem__, numbers))
