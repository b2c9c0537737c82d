"""The journal of what setup wrote, so that it can be compared and taken out again."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hivemem.errors import Corruption, InvalidInput, Unavailable
from hivemem.surfaces.running_server import config_folder
from hivemem.surfaces.setup.agents import Format, Scope
from hivemem.surfaces.setup.entry import Added, Entry
from hivemem.surfaces.setup.jsonc import JsonValue

FILE_NAME = "setup.json"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One addition to one file.

    Attributes:
        root: The project's folder; empty for the user scope.
        file: The file behind all links.
        text: What was inserted, verbatim.
        made: Containers that the insertion made, as in `Added`.
        created: Whether setup made the file.
        folders: Folders that setup made for it, outermost first.
        before: SHA-256 of the file before, None when there was none.
        after: SHA-256 of the file afterwards.
        at: When, in ISO 8601.
        url: Server that was asked for.
        named: Whether that server was named by the user.
        data_dir: Data directory that was asked for, None for the default one.
        literal: Whether a key was written down.
    """

    agent: str
    scope: Scope
    root: str
    what: str
    file: str
    format: Format
    path: tuple[str, ...]
    value: JsonValue
    in_array: bool
    text: str
    made: int
    created: bool
    folders: tuple[str, ...]
    before: str | None
    after: str
    at: str
    url: str
    named: bool
    data_dir: str | None
    literal: bool

    @property
    def entry(self) -> Entry:
        """What was added."""
        return Entry(path=self.path, value=self.value, in_array=self.in_array)

    @property
    def added(self) -> Added:
        """How it was added."""
        return Added(text=self.text, made=self.made)


def journal_path() -> Path:
    """Where the journal is."""
    return Path(config_folder()) / FILE_NAME


def read_journal() -> list[Record]:
    """All additions that were not taken out, oldest first.

    Raises:
        Corruption: The journal is not one of ours.
        Unavailable: It cannot be read.
    """
    path = journal_path()
    try:
        content: Any = json.loads(path.read_bytes())
        if content["version"] != _VERSION:
            raise ValueError(f"its version is {content['version']!r}, this program knows {_VERSION}")
        return [_record(one) for one in content["entries"]]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Corruption(
            f"{path} is not a journal of setup: {error}. Move it away; what setup added then stays in the "
            "agents' files."
        ) from error


def write_journal(records: list[Record]) -> None:
    """Replace the journal; it goes when it is empty."""
    path = journal_path()
    if not records:
        path.unlink(missing_ok=True)
        return
    entries = [dataclasses.asdict(record) for record in records]
    body = json.dumps({"version": _VERSION, "entries": entries}, indent=1, ensure_ascii=False)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # It holds the key when one was written down.
    replace_file(path, f"{body}\n".encode(), mode=0o600)


def _record(stored: dict[str, Any]) -> Record:
    fields: dict[str, Any] = dict(stored)
    fields["path"], fields["folders"] = tuple(stored["path"]), tuple(stored["folders"])
    fields["scope"], fields["format"] = Scope(stored["scope"]), Format(stored["format"])
    return Record(**fields)


def read_file(path: Path) -> bytes | None:
    """The content of a file, None when there is none.

    Raises:
        Unavailable: It cannot be read.
    """
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}.") from error


def decoded(path: Path, content: bytes | None) -> str:
    """The content as text, a byte-order mark included.

    Raises:
        InvalidInput: It is not UTF-8.
    """
    try:
        return (content or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text: byte {error.start} cannot be decoded.") from error


def replace_file(path: Path, content: bytes, *, mode: int) -> None:
    """Put `content` in the place of a file at once: readers see the old content or the new one.

    Args:
        path: Not a symbolic link; its folder exists.
        content: All of the file.
        mode: Permissions of a file that is new; others keep theirs.

    Raises:
        Unavailable: It cannot be written.
    """
    descriptor, name = -1, ""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), path.stat().st_mode & 0o7777 if path.exists() else mode)
        Path(name).replace(path)
        name = ""
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        if name:
            Path(name).unlink(missing_ok=True)
