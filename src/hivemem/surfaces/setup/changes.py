"""Setup and its undoing: what would change, worked out for all files before the first one is written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hivemem.errors import Conflict, HivememError, InvalidInput
from hivemem.surfaces.setup import json_edit, toml_edit
from hivemem.surfaces.setup.agents import KEY_PART, Format, Part, Scope, Wishes, parts
from hivemem.surfaces.setup.entry import Added, Entry
from hivemem.surfaces.setup.journal import Record, decoded, read_file, read_journal
from hivemem.surfaces.setup.jsonc import JsonValue, is_blank, parse_jsonc
from hivemem.surfaces.setup.plan import FileChange, Plan

_EDITORS = {Format.JSON: json_edit, Format.TOML: toml_edit}


def plan_setup(wishes: Wishes, *, force: bool = False) -> Plan:
    """What connecting an agent changes; nothing where it is connected as wished.

    Args:
        wishes: What to write.
        force: Replace entries of the same name that are not ours, or that were changed by hand.

    Raises:
        Conflict: Something else stands in the place of an entry.
        InvalidInput: A file cannot be read as what it should be.
    """
    plan = Plan(records=read_journal())
    replaced = _make_room(plan, wishes)
    for part in parts(wishes):
        change = _change(plan, part.file)
        change.private = change.private or part.private
        try:
            done = _add(plan, change, part, wishes, force=force)
            said = "replaced" if done == "added" and part.what in replaced else done
            plan.said.append(f"{part.what}: {said} in {part.file}")
        except HivememError as error:
            raise type(error)(f"{part.file}: {error.message}") from error
    plan.files = [change for change in plan.files if change.after != change.before]
    return plan


def plan_uninstall(
    agent: str | None, *, project: Path | None = None, user_only: bool = False, force: bool = False
) -> Plan:
    """What taking setup's additions out changes.

    Args:
        agent: One agent; None for all.
        project: Only what was added to this project's files.
        user_only: Only what was added to the user's files.
        force: Take out what was changed by hand as well.
    """
    plan = Plan(records=read_journal())
    root = "" if user_only else None if project is None else str(project)
    chosen = [
        record
        for record in plan.records
        if agent in (None, record.agent) and (root is None or record.root == root)
    ]
    for record in reversed(chosen):
        path = Path(record.file)
        others = [one for one in plan.records if one not in chosen and one.url == record.url]
        if record.what == KEY_PART and others:
            # Other agents' hooks still read this key, so it is theirs from now on.
            plan.records[plan.records.index(record)] = replace(record, agent=others[0].agent)
            continue
        try:
            change = _change(plan, path)
            said = _take_out(change, record, force=force)
        except HivememError as error:
            plan.kept.append(f"{record.what}: stays in {path}: {error.message}")
            continue
        plan.records.remove(record)
        plan.said.append(f"{record.what}: {said} {path}")
        change.folders = record.folders or change.folders
    plan.files = [change for change in plan.files if change.after != change.before]
    return plan


def present(record: Record) -> JsonValue:
    """What stands in the place of an addition now: the same value, another one, or None.

    Raises:
        HivememError: The file cannot be read as what it should be.
    """
    path = Path(record.file)
    content = read_file(path)
    return None if content is None else _found(decoded(path, content), record.format, record.entry)


def group_of(record: Record) -> tuple[str, str, str]:
    """(agent, scope, project folder): what one run of setup wrote."""
    return record.agent, record.scope.value, record.root


def up_to_date(records: Sequence[Record]) -> bool:
    """Whether the records of one group are what setup would write today."""
    first = records[0]
    written = {record.what: record.value for record in records}
    wishes = Wishes(
        agent=first.agent,
        scope=first.scope,
        url=first.url,
        key=str(written.get(KEY_PART, "")) if first.literal else None,
        remote=first.named,
        data_dir=first.data_dir,
        project=Path(first.root) if first.root else None,
    )
    wanted = {part.what: part.entry.value for part in parts(wishes)}
    # A part may have been there before setup came, and then has no record.
    return all(wanted.get(what, value) == value for what, value in written.items())


def _change(plan: Plan, path: Path) -> FileChange:
    """The change of a file that the plan has so far; links are followed, so that they stay links."""
    target = Path(os.path.realpath(path))
    for change in plan.files:
        if change.path == target:
            return change
    content = read_file(target)
    change = FileChange(path=target, before=content, after=content, created=content is None)
    if content is None:
        change.folders = _missing_folders(target)
    plan.files.append(change)
    return change


def _make_room(plan: Plan, wishes: Wishes) -> set[str]:
    """Take out what an earlier run wrote in files where it would be written differently now.

    All of a file's additions go, the last one first, so that the file is as it was before setup. What was
    changed by hand stays.

    Returns:
        The parts that went.
    """
    mine = [one for one in plan.records if group_of(one) == _group(wishes)]
    wanted = {part.what: part.entry for part in parts(wishes)}
    outdated = {one.file for one in mine if wanted.get(one.what) not in (None, one.entry)}
    gone: set[str] = set()
    for record in reversed(mine):
        if record.file not in outdated:
            continue
        change = _change(plan, Path(record.file))
        try:
            if present(record) is None:
                continue
            _take_out(change, record, force=False)
        except HivememError:
            continue
        change.created = change.created or record.created
        change.folders = change.folders or record.folders
        plan.records.remove(record)
        gone.add(record.what)
    return gone


def _add(plan: Plan, change: FileChange, part: Part, wishes: Wishes, *, force: bool) -> str:
    text = decoded(change.path, change.after)
    found = _found(text, part.format, part.entry) if change.after is not None else None
    if found == part.entry.value or (part.only_if_absent and found is not None):
        return "is there already"
    said = "added"
    if found is not None:
        if not force:
            name = "the file" if part.format is Format.TEXT else part.entry.name
            raise Conflict(f"{name} is there already with other content; --force replaces it.")
        text, said = _without_foreign(text, part, found), "replaced"
    agent, scope, root = _group(wishes)
    stale = [
        one
        for one in plan.records
        if (*group_of(one), one.what, one.file) == (agent, scope, root, part.what, str(change.path))
    ]
    for record in stale:
        # Of an addition that others have taken out, or of one that was just replaced.
        plan.records.remove(record)
        change.created = change.created or record.created
        change.folders = change.folders or record.folders
    text, added = _inserted(text, part)
    change.after = text.encode()
    record = Record(
        agent=agent,
        scope=wishes.scope,
        root=root,
        what=part.what,
        file=str(change.path),
        format=part.format,
        path=part.entry.path,
        value=part.entry.value,
        in_array=part.entry.in_array,
        text=added.text,
        made=added.made,
        created=change.created,
        folders=change.folders,
        before=None if change.before is None else hashlib.sha256(change.before).hexdigest(),
        after=hashlib.sha256(change.after).hexdigest(),
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        url=wishes.url,
        named=wishes.remote,
        data_dir=wishes.data_dir,
        literal=wishes.key is not None,
    )
    plan.records.append(record)
    return said


def _group(wishes: Wishes) -> tuple[str, str, str]:
    """The group that the records of these wishes will be of."""
    root = str(wishes.project) if wishes.scope is Scope.PROJECT else ""
    return wishes.agent, wishes.scope.value, root


def _take_out(change: FileChange, record: Record, *, force: bool) -> str:
    if change.after is None:
        return "was gone already with"
    text = decoded(change.path, change.after)
    found = _found(text, record.format, record.entry)
    if found is None and not (record.in_array and _resembling(text, record)):
        return "was gone already from"
    if record.format is Format.TEXT:
        if found != record.value and not force:
            raise Conflict("it was changed by hand; --force takes it out all the same.")
        change.after = None
        return "removed with"
    try:
        rest = _removed(text, record) if found == record.value else None
        if rest is None:
            raise Conflict("it was changed by hand")
    except Conflict as error:
        if not force:
            hint = "--force takes it out all the same."
            raise Conflict(f"{error.message.rstrip('.')}; {hint}") from error
        rest = _forced(text, record, found)
    change.after = rest.encode()
    if record.created and _is_empty(rest, record.format):
        change.after = None
    return "removed from"


def _found(text: str, kind: Format, entry: Entry) -> JsonValue:
    return text if kind is Format.TEXT else _EDITORS[kind].find_entry(text, entry)


def _inserted(text: str, part: Part) -> tuple[str, Added]:
    if part.format is not Format.TEXT:
        return _EDITORS[part.format].add_entry(text, part.entry)
    content = str(part.entry.value)
    return content, Added(text=content)


def _removed(text: str, record: Record) -> str | None:
    if record.format is Format.TEXT:
        return ""
    return _EDITORS[record.format].remove_entry(text, record.entry, record.added)


def _without_foreign(text: str, part: Part, found: JsonValue) -> str:
    entry = replace(part.entry, value=found)
    if part.format is Format.TEXT:
        return ""
    if part.format is Format.TOML:
        return toml_edit.remove_section(text, entry)
    return json_edit.remove_entry(text, entry, Added(text="\0")) or text


def _forced(text: str, record: Record, found: JsonValue) -> str:
    """The text without what became of an addition."""
    value = _resembling(text, record) if record.in_array else found
    entry = replace(record.entry, value=value)
    if record.format is Format.TOML:
        return toml_edit.remove_section(text, entry)
    return json_edit.remove_entry(text, entry, Added(text="\0", made=record.made)) or text


def _resembling(text: str, record: Record) -> JsonValue:
    """The item of an array that became of our hook: the one that still calls it."""
    if record.format is Format.JSON:
        node = None if is_blank(text) else parse_jsonc(text).at(record.path)
        items = node.value if node is not None else None
    else:
        items = toml_edit.find_entry(text, Entry(path=record.path, value=None))
    event = "hook prompt" if record.what == "prompt hook" else "hook stop"
    for item in items if isinstance(items, list) else ():
        if event in repr(item) and "hivemem" in repr(item):
            return item
    return None


def _is_empty(text: str, kind: Format) -> bool:
    if is_blank(text) or not text.strip():
        return True
    try:
        return kind is Format.JSON and "".join(text.split()) == "{}" and parse_jsonc(text).value == {}
    except InvalidInput:
        return False


def _missing_folders(path: Path) -> tuple[str, ...]:
    missing: list[str] = []
    for folder in path.parents:
        if folder.exists():
            break
        missing.append(str(folder))
    return tuple(reversed(missing))
