"""What a command would do to files: shown as a diff, or carried out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hivemem.errors import Conflict, Unavailable
from hivemem.surfaces.setup.journal import Record, read_file, replace_file, write_journal


@dataclass(slots=True, kw_only=True)
class FileChange:
    """A file as it is and as it will be.

    Attributes:
        before: None when there is no file.
        after: None when the file goes.
        private: Whether a new file is for the user alone.
        created: Whether setup made the file, now or earlier.
        folders: Folders to make first, or to remove afterwards when they are empty.
    """

    path: Path
    before: bytes | None
    after: bytes | None
    private: bool = False
    created: bool = False
    folders: tuple[str, ...] = ()

    def diff(self, secret: str | None = None) -> str:
        """The change as a unified diff; empty when nothing changes."""
        old, new = (_lines(content) for content in (self.before, self.after))
        names = (
            "/dev/null" if self.before is None else str(self.path),
            "/dev/null" if self.after is None else str(self.path),
        )
        text = "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(old, new, *names)
        )
        return text.replace(secret, "hm_***") if secret else text


@dataclass(slots=True, kw_only=True)
class Plan:
    """What a command would do.

    Attributes:
        files: The changed ones, each once.
        records: The journal afterwards.
        said: One line for each part.
        kept: Why parts stay that were asked to go, one line each.
    """

    files: list[FileChange] = field(default_factory=list[FileChange])
    records: list[Record] = field(default_factory=list[Record])
    said: list[str] = field(default_factory=list[str])
    kept: list[str] = field(default_factory=list[str])

    def carry_out(self, *, removing: bool) -> None:
        """Write the files and the journal.

        The journal is written first when something is added and last when something is removed: it may name
        what is not there, and never lacks what is.
        """
        if not removing:
            write_journal(self.records)
        for change in self.files:
            _write(change)
        if removing:
            write_journal(self.records)


def _write(change: FileChange) -> None:
    if read_file(change.path) != change.before:
        raise Conflict(f"{change.path} was changed by another program meanwhile; run the command again.")
    if change.after is None:
        change.path.unlink(missing_ok=True)
        for folder in reversed(change.folders):
            if Path(folder).is_dir() and not any(Path(folder).iterdir()):
                Path(folder).rmdir()
        return
    try:
        change.path.parent.mkdir(mode=0o700 if change.private else 0o777, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{change.path.parent} cannot be made: {error.strerror}.") from error
    mode = 0o600 if change.private else 0o644
    replace_file(change.path, change.after, mode=mode)


def _lines(content: bytes | None) -> Sequence[str]:
    return (content or b"").decode("utf-8", errors="replace").splitlines(keepends=True)
