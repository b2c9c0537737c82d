"""What is added to an agent's file, and what an insertion looked like."""

from __future__ import annotations

from dataclasses import dataclass

from hivemem.surfaces.setup.jsonc import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A value that belongs at a place: as a member of nested tables, or as one item of an array.

    Attributes:
        path: Keys from the root, at least one. With `in_array` the last one names the array.
        value: What stands there.
        in_array: Whether it is an item among others, told apart by its value.
    """

    path: tuple[str, ...]
    value: JsonValue
    in_array: bool = False

    @property
    def name(self) -> str:
        """The place, for messages."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What an insertion put into a text.

    Attributes:
        text: The characters, verbatim.
        made: How many of the containers on the path it made: 0 when all were there. The document counts as
            one.
    """

    text: str
    made: int = 0
