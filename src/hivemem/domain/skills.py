"""Skills: texts that teach an agent something, published by the people of a graph or built in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from hivemem.domain.text import storable_text
from hivemem.errors import InvalidInput

MAX_SKILL_NAME_CHARACTERS = 64
MAX_SKILL_PATH_CHARACTERS = 200

_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFile:
    """A text file beside the text of a skill; `path` is relative, with slashes.

    Raises:
        InvalidInput: The path could lead out of the skill's folder, or into its own text.
    """

    path: str
    content: str
    content_type: str

    def __post_init__(self) -> None:
        segments = self.path.split("/")
        if len(self.path) > MAX_SKILL_PATH_CHARACTERS or not all(map(_SEGMENT.fullmatch, segments)):
            raise InvalidInput(
                f"/files/path {self.path[:MAX_SKILL_PATH_CHARACTERS]!r} is not a plain relative path: parts "
                "of letters, digits, '.', '_' and '-' that begin with a letter or digit, slashes between."
            )
        if segments[-1].lower() == "skill.md":
            raise InvalidInput(f"/files/path {self.path!r} is the text of a skill itself; leave it out.")
        storable_text(self.content, f"/files/{self.path}")

    @property
    def sha256(self) -> str:
        """Of the UTF-8 bytes, in hexadecimal."""
        return text_sha256(self.content)

    @property
    def size_bytes(self) -> int:
        """Of the UTF-8 bytes."""
        return len(self.content.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomSkill:
    """A skill that somebody published. `content` is Markdown; `published_at` is aware UTC.

    Raises:
        InvalidInput: A name that cannot be a folder, a blank text, or files that cannot be laid out.
    """

    skill_id: str
    name: str
    version: str
    content: str
    files: tuple[SkillFile, ...] = ()
    published_at: datetime

    def __post_init__(self) -> None:
        checked_skill_name(self.name)
        if not storable_text(self.content, "/content").strip():
            raise InvalidInput(
                f"/content of the skill {self.name!r} is blank; write what an agent should do."
            )
        _check_layout({file.path for file in self.files}, len(self.files))

    @property
    def sha256(self) -> str:
        """Of the UTF-8 bytes of the text, in hexadecimal."""
        return text_sha256(self.content)


def checked_skill_name(name: str) -> str:
    """Return `name` if a folder can have it.

    Raises:
        InvalidInput: It cannot.
    """
    if len(name) > MAX_SKILL_NAME_CHARACTERS or not _SEGMENT.fullmatch(name):
        raise InvalidInput(
            f"/name {name[:MAX_SKILL_NAME_CHARACTERS]!r} is no name of a skill: 1 to "
            f"{MAX_SKILL_NAME_CHARACTERS} letters, digits, '.', '_' and '-', a letter or digit first."
        )
    return name


def text_sha256(text: str) -> str:
    """SHA-256 of the UTF-8 bytes of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_newer(version: str, than: str) -> bool:
    """Whether a version is higher: dotted numbers compare as numbers, anything else is newer if it differs.

    Example:
        >>> is_newer("0.10.0", "0.9.3"), is_newer("1.0", "1.0.0"), is_newer("b", "a")
        (True, False, True)
    """
    ours, theirs = _numbers(version), _numbers(than)
    if ours is None or theirs is None:
        return version != than
    return ours > theirs


def following_version(version: str) -> str:
    """The version after this one: the last number of dotted numbers goes up, anything else gets a `.1`.

    Example:
        >>> following_version("0.1.9"), following_version("draft")
        ('0.1.10', 'draft.1')
    """
    if _numbers(version) is None:
        return f"{version}.1"
    front, dot, last = version.rpartition(".")
    return f"{front}{dot}{int(last) + 1}"


def _numbers(version: str) -> tuple[int, ...] | None:
    """The numbers of a dotted version without zeros at the end, None when it is none."""
    parts = version.split(".")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        return None
    numbers = [int(part) for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _check_layout(paths: Collection[str], number: int) -> None:
    """Refuse files that one folder cannot hold, also where case does not matter."""
    folded = {path.lower() for path in paths}
    if len(folded) < number:
        raise InvalidInput("/files names a path twice; where case does not matter, they would be one file.")
    for path in folded:
        parts = path.split("/")
        for length in range(1, len(parts)):
            folder = "/".join(parts[:length])
            if folder in folded:
                raise InvalidInput(
                    f"/files has {folder!r} both as a file and as a folder; rename one of them."
                )
