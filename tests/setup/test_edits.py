"""Edits of configuration texts: what is not ours stays as it was, to the byte."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.errors import Conflict, InvalidInput
from hivemem.surfaces.setup import json_edit, toml_edit
from hivemem.surfaces.setup.entry import Entry
from hivemem.surfaces.setup.jsonc import is_blank, parse_jsonc
from tests.setup.config_texts import VALUES, json_texts, toml_texts

SERVER = Entry(
    path=("mcpServers", "hivemem"), value={"type": "http", "url": "http://x/mcp", "headers": {"A": "b"}}
)
PROMPT = Entry(
    path=("hooks", "UserPromptSubmit"), value={"hooks": [{"command": "hivemem hook prompt"}]}, in_array=True
)
STOP = Entry(path=("hooks", "Stop"), value={"hooks": [{"command": "hivemem hook stop"}]}, in_array=True)
ENTRIES = (SERVER, PROMPT, STOP)

DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "mcpServers": st.dictionaries(st.sampled_from(["other", "two"]), VALUES, max_size=2),
        "hooks": st.fixed_dictionaries(
            {},
            optional={
                "UserPromptSubmit": st.lists(VALUES, max_size=2),
                "Stop": st.lists(VALUES, max_size=2),
                "PreToolUse": st.lists(VALUES, max_size=1),
            },
        ),
        "first": VALUES,
        "last": VALUES,
    },
)

TABLE = Entry(path=("mcp_servers", "hivemem"), value={"url": "http://x/mcp", "http_headers": {"A": 'q"'}})
HOOK = Entry(
    path=("hooks",), value={"event": "Stop", "command": "hivemem hook stop", "timeout": 10}, in_array=True
)


@settings(max_examples=50, deadline=None)
@given(text=json_texts(DOCUMENTS))
def test_json_is_the_same_after_adding_and_removing(text: str) -> None:
    before = parse_jsonc(text).value
    assert isinstance(before, dict)
    changed, steps = text, []
    for entry in ENTRIES:
        assert json_edit.find_entry(changed, entry) is None
        changed, added = json_edit.add_entry(changed, entry)
        steps.append((entry, added))
        assert json_edit.find_entry(changed, entry) == entry.value
    expected: dict[str, Any] = json.loads(json.dumps(before))
    expected.setdefault("mcpServers", {})["hivemem"] = SERVER.value
    for entry in (PROMPT, STOP):
        expected.setdefault("hooks", {}).setdefault(entry.path[1], [])
        found = json_edit.parse_jsonc(changed).at(entry.path)
        assert found is not None
        items = [*expected["hooks"][entry.path[1]], entry.value]
        assert sorted(map(repr, found.value)) == sorted(map(repr, items))
    for entry, added in reversed(steps):
        removed = json_edit.remove_entry(changed, entry, added)
        assert removed is not None
        changed = removed
    assert changed == text


@settings(max_examples=40, deadline=None)
@given(text=json_texts(DOCUMENTS), other=VALUES, first=st.booleans())
def test_json_around_the_entries_may_be_edited_meanwhile(text: str, other: Any, first: bool) -> None:
    neighbour = Entry(path=("mcpServers", "written-by-hand"), value={"x": other})
    changed, steps = text, []
    for entry in ENTRIES:
        if first and entry is SERVER:
            changed, _ = json_edit.add_entry(changed, neighbour)
        changed, added = json_edit.add_entry(changed, entry)
        steps.append((entry, added))
    if not first:
        changed, _ = json_edit.add_entry(changed, neighbour)
    for entry, added in reversed(steps):
        removed = json_edit.remove_entry(changed, entry, added)
        assert removed is not None
        changed = removed
    before = json.loads(json.dumps(parse_jsonc(text).value))
    before.setdefault("mcpServers", {})["written-by-hand"] = neighbour.value
    assert parse_jsonc(changed).value == before


@settings(max_examples=40, deadline=None)
@given(text=json_texts(DOCUMENTS), indent=st.sampled_from([None, 1, 2, "\t"]))
def test_json_that_was_reformatted_meanwhile_keeps_its_values(text: str, indent: Any) -> None:
    changed, steps = text, []
    for entry in ENTRIES:
        changed, added = json_edit.add_entry(changed, entry)
        steps.append((entry, added))
    changed = json.dumps(parse_jsonc(changed).value, indent=indent)
    for entry, added in reversed(steps):
        removed = json_edit.remove_entry(changed, entry, added)
        assert removed is not None
        changed = removed
    assert parse_jsonc(changed).value == parse_jsonc(text).value


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", "// nothing yet", "/* a */\r\n"])
def test_a_file_without_a_value_gets_a_document_and_loses_it(text: str) -> None:
    changed, added = json_edit.add_entry(text, SERVER)
    assert changed.startswith(text)
    assert parse_jsonc(changed).value == {"mcpServers": {"hivemem": SERVER.value}}
    assert json_edit.remove_entry(changed, SERVER, added) == text


def test_an_insertion_looks_like_its_neighbours() -> None:
    text = '{\n\t"mcpServers": {\n\t\t"other": {}, // mine\n\t\t"two": {}\n\t}\n}\n'
    changed, _ = json_edit.add_entry(text, Entry(path=("mcpServers", "hivemem"), value={"url": "u"}))
    assert changed == (
        '{\n\t"mcpServers": {\n\t\t"other": {}, // mine\n\t\t"two": {},\n'
        '\t\t"hivemem": {\n\t\t\t"url": "u"\n\t\t}\n\t}\n}\n'
    )
    commented = '{\n  "mcpServers": {\n    "other": {} // the last\n  }\n}'
    changed, _ = json_edit.add_entry(commented, Entry(path=("mcpServers", "hivemem"), value={}))
    assert changed == '{\n  "mcpServers": {\n    "hivemem": {},\n    "other": {} // the last\n  }\n}'
    assert json_edit.add_entry("{}", Entry(path=("a",), value=1))[0] == '{\n  "a": 1\n}'
    assert json_edit.add_entry('{"b": 2}', Entry(path=("a",), value=1))[0] == '{"b": 2, "a": 1}'


def test_an_entry_changed_by_hand_is_not_removed() -> None:
    changed, added = json_edit.add_entry("{}", SERVER)
    edited = changed.replace("http://x/mcp", "http://y/mcp")
    assert json_edit.remove_entry(edited, SERVER, added) is None
    assert json_edit.remove_entry("{}", SERVER, added) is None
    assert json_edit.remove_entry("", SERVER, added) is None


@pytest.mark.parametrize(
    "text",
    [
        "{", "}", "{} {}", "{'a': 1}", "{a: 1}", '{"a" 1}', '{"a": 1 "b": 2}', "[1 2]", '{"a": 01}',
        '{"a": +1}',
        '{"a": "\n"}', '{"a": "\\x"}', '{"a": nul}', '{"a": 1}/*', '{,}', "[,]", '{"a": 1,, "b": 2}',
        '{"a": 1, "a": 2}', '{"a": NaN}', "[" * 300, '"\\ud800', "{\x00}",
    ],
)  # fmt: skip
def test_what_is_not_json_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"^line \d+, column \d+: "):
        json_edit.add_entry(text, SERVER)


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("[]", SERVER),
        ('{"mcpServers": []}', SERVER),
        ('{"mcpServers": null}', SERVER),
        ('{"hooks": {"Stop": {}}}', STOP),
        ('{"hooks": []}', STOP),
    ],
)
def test_another_shape_is_refused(text: str, entry: Entry) -> None:
    with pytest.raises(Conflict, match="is not an"):
        json_edit.find_entry(text, entry)
    with pytest.raises(Conflict):
        json_edit.add_entry(text, entry)


@settings(max_examples=50, deadline=None)
@given(value=VALUES)
def test_the_reader_agrees_with_the_standard_library(value: Any) -> None:
    for indent in (None, 2):
        assert parse_jsonc(json.dumps(value, indent=indent)).value == value
    assert not is_blank(json.dumps(value))


@settings(max_examples=50, deadline=None)
@given(text=toml_texts())
def test_toml_is_the_same_after_adding_and_removing(text: str) -> None:
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(InvalidInput):
            toml_edit.add_entry(text, TABLE)
        return
    changed, steps = text, []
    for entry in (TABLE, HOOK):
        changed, added = toml_edit.add_entry(changed, entry)
        steps.append((entry, added))
        assert toml_edit.find_entry(changed, entry) == entry.value
    after = tomllib.loads(changed)
    assert after["mcp_servers"]["hivemem"] == TABLE.value
    assert after["hooks"] == [*before.get("hooks", []), HOOK.value]
    assert {**after, "mcp_servers": 0, "hooks": 0} == {**before, "mcp_servers": 0, "hooks": 0}
    for entry, added in reversed(steps):
        removed = toml_edit.remove_entry(changed, entry, added)
        assert removed is not None
        changed = removed
    assert changed == text


@settings(max_examples=30, deadline=None)
@given(text=toml_texts(), windows=st.booleans(), order=st.permutations((0, 1)))
def test_toml_around_the_tables_may_be_edited_meanwhile(text: str, windows: bool, order: list[int]) -> None:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    changed, steps = text, []
    for entry in (TABLE, HOOK):
        changed, added = toml_edit.add_entry(changed, entry)
        steps.append((entry, added))
    more = "\n# mine\n[tools]\nx = 1\n"
    changed = f"# on top\n{changed}{more}"
    if windows:
        changed = changed.replace("\r\n", "\n").replace("\n", "\r\n")
    for index in order:
        removed = toml_edit.remove_entry(changed, *steps[index])
        assert removed is not None
        changed = removed
    expected = f"# on top\n{text}{more}".replace("\r\n", "\n")
    assert [line for line in changed.splitlines() if line] == [line for line in expected.splitlines() if line]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('mcp_servers = { other = { url = "x" } }', "inline"),
        ("mcp_servers = 3", "not a table"),
    ],
)
def test_toml_that_takes_no_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(Conflict, match=message):
        if toml_edit.find_entry(text, TABLE) is None:
            toml_edit.add_entry(text, TABLE)
    with pytest.raises(Conflict):
        if toml_edit.find_entry("hooks = []", HOOK) is None:
            toml_edit.add_entry("hooks = []", HOOK)


def test_a_toml_table_with_a_line_of_the_user_s_own_stays() -> None:
    changed, added = toml_edit.add_entry("a = 1\n", TABLE)
    commented = changed.replace("url = ", "# why\nurl = ")
    with pytest.raises(Conflict, match="by hand"):
        toml_edit.remove_entry(commented, TABLE, added)
    longer = changed + "enabled = false\n\n[after]\nb = 2\n"
    assert toml_edit.remove_entry(longer, TABLE, added) is None
    found = toml_edit.find_entry(longer, TABLE)
    assert (
        toml_edit.remove_section(longer, Entry(path=TABLE.path, value=found)) == "a = 1\n\n[after]\nb = 2\n"
    )
