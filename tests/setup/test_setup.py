"""`hivemem setup` and `hivemem uninstall` on the files of every agent."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivemem.errors import Conflict, Corruption, InvalidInput
from hivemem.surfaces.cli.main import main
from hivemem.surfaces.setup import journal
from hivemem.surfaces.setup.agents import AGENTS, Part, Scope, Wishes, parts, skill_text
from hivemem.surfaces.setup.changes import plan_setup, plan_uninstall
from hivemem.surfaces.setup.jsonc import parse_jsonc
from tests.setup.config_texts import VALUES, json_texts, toml_texts

URL = "http://127.0.0.1:8477"
CLAUDE_SETTINGS = (
    '\ufeff{\r\n\t"permissions" : {"allow":["Bash(ls:*)"],},   // mine\r\n\t"hooks": {\r\n'
    '\t\t"Stop": [ {"hooks": [{"type": "command", "command": "beep"}]} ] /* loud */\r\n\t},\r\n'
    '\t"model": "opus"\r\n\r\n\r\n}  \t\r\n'
)
CODEX_CONFIG = (
    '# my settings\nmodel = "gpt-5"  # fast\n\n[mcp_servers.docs]\ncommand = "npx"\nargs = [\n  "-y", # yes\n'
    ']\n\n[projects."/home/me/x"]\ntrust_level = "trusted"'
)


def wishes(agent: str, **changes: Any) -> Wishes:
    return Wishes(**{"agent": agent, "scope": Scope.USER, "url": URL, **changes})


def connect(agent: str, *, force: bool = False, **changes: Any) -> list[str]:
    plan = plan_setup(wishes(agent, **changes), force=force)
    plan.carry_out(removing=False)
    return plan.said


def disconnect(agent: str | None = None, **options: Any) -> list[str]:
    plan = plan_uninstall(agent, **options)
    plan.carry_out(removing=True)
    return plan.kept


def snapshot(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Every file below a folder: mode or link target, and content."""
    found: dict[str, tuple[str, bytes]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path)] = (os.readlink(path), b"")  # noqa: PTH115
        elif path.is_file():
            found[str(path)] = (oct(path.stat().st_mode), path.read_bytes())
        else:
            found[str(path)] = ("folder", b"")
    return found


def part(agent: str, what: str, **changes: Any) -> Part:
    return next(one for one in parts(wishes(agent, **changes)) if one.what == what)


@pytest.mark.parametrize("scope", list(Scope))
@pytest.mark.parametrize("agent", AGENTS)
def test_an_empty_home_is_empty_again(home: Path, tmp_path: Path, agent: str, scope: Scope) -> None:
    project = tmp_path / "project"
    project.mkdir()
    place = {"scope": scope, "project": project if scope is Scope.PROJECT else None}
    said = connect(agent, **place)
    assert len(said) == len(parts(wishes(agent, **place)))
    touched = home if scope is Scope.USER else project
    assert list(touched.rglob("*.md"))
    assert disconnect(agent) == []
    (home / ".config/hivemem").rmdir()
    (home / ".config").rmdir()
    assert snapshot(home) == {}
    assert snapshot(project) == {}


def test_every_other_byte_of_the_files_stays(home: Path) -> None:
    dotfiles = home / "dotfiles"
    dotfiles.mkdir()
    (home / ".claude").mkdir()
    (dotfiles / "settings").write_bytes(CLAUDE_SETTINGS.encode())
    (dotfiles / "settings").chmod(0o640)
    (home / ".claude/settings.json").symlink_to(dotfiles / "settings")
    (home / ".claude.json").write_text('{"numStartups":7,"projects":{},"oauthAccount":{"id":"x"}}')
    (home / ".claude.json").chmod(0o600)
    (home / ".codex").mkdir()
    (home / ".codex/config.toml").write_text(CODEX_CONFIG)
    before = snapshot(home)
    for agent in AGENTS:
        connect(agent)
    changed = (dotfiles / "settings").read_bytes().decode()
    assert (home / ".claude/settings.json").is_symlink()
    assert (dotfiles / "settings").stat().st_mode & 0o777 == 0o640
    assert (home / ".claude.json").stat().st_mode & 0o777 == 0o600
    # What was there is still there, in its order; only lines were added, with the file's own line ends.
    kept = iter(changed)
    assert all(character in kept for character in CLAUDE_SETTINGS)
    assert "\n" not in changed.replace("\r\n", "")
    value: Any = parse_jsonc(changed).value
    assert value["model"] == "opus"
    commands = [group["hooks"][0]["command"] for group in value["hooks"]["Stop"]]
    assert commands[0] == "beep" and commands[1].endswith("hivemem hook stop --agent claude")
    assert (home / ".codex/config.toml").read_text().startswith(CODEX_CONFIG)
    assert tomllib.loads((home / ".codex/config.toml").read_text())["mcp_servers"]["hivemem"] == {
        "url": f"{URL}/mcp",
        "bearer_token_env_var": "HM_API_KEY",
    }
    again = snapshot(home)
    for agent in AGENTS:
        plan = plan_setup(wishes(agent))
        assert plan.files == []
        assert all("there already" in line for line in plan.said)
    assert snapshot(home) == again
    assert disconnect() == []
    shutil.rmtree(home / ".config")
    assert snapshot(home) == before


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=json_texts(st.dictionaries(st.sampled_from(["model", "env", "x"]), VALUES, max_size=3)),
    config=toml_texts(),
    agents=st.permutations(AGENTS),
)
def test_random_files_are_the_same_afterwards(home: Path, text: str, config: str, agents: list[str]) -> None:
    shutil.rmtree(home)
    try:
        tomllib.loads(config)
    except tomllib.TOMLDecodeError:
        config = ""
    for agent in AGENTS:
        for one in parts(wishes(agent)):
            if one.format != "text":
                one.file.parent.mkdir(parents=True, exist_ok=True)
                one.file.write_bytes((text if one.format == "json" else config).encode())
    before = snapshot(home)
    for agent in agents:
        connect(agent)
        assert plan_setup(wishes(agent)).files == []
    for agent in reversed(agents):
        assert disconnect(agent) == []
    shutil.rmtree(home / ".config")
    assert snapshot(home) == before


def test_what_the_user_adds_meanwhile_stays(home: Path) -> None:
    connect("cursor")
    servers, hooks = home / ".cursor/mcp.json", home / ".cursor/hooks.json"
    edited = servers.read_text().replace('"hivemem"', '"other": {"url": "u"},\n    "hivemem"')
    servers.write_text(edited)
    hooks.write_text(json.dumps({**json.loads(hooks.read_text()), "mine": True}, indent=4))
    assert disconnect("cursor") == []
    assert json.loads(servers.read_text()) == {"mcpServers": {"other": {"url": "u"}}}
    assert json.loads(hooks.read_text()) == {"mine": True}
    assert not (home / ".cursor/skills").exists()


@pytest.mark.parametrize("agent", AGENTS)
def test_what_was_changed_by_hand_stays_unless_forced(home: Path, agent: str) -> None:
    connect(agent)
    edits: dict[Path, Callable[[str], str]] = {}
    for one in parts(wishes(agent)):
        edits[one.file] = lambda text: (
            text.replace(f"{URL}/mcp", "http://mine/mcp")
            .replace("hook prompt", "hook prompt --quiet")
            .replace("hook stop", "hook stop --quiet")
            .replace("# hivemem\n", "# my memory\n")
        )
    for file, edit in edits.items():
        file.write_text(edit(file.read_text()))
    edited = {file: file.read_text() for file in edits}
    kept = disconnect(agent)
    assert len(kept) == 4
    assert all("by hand" in line and "--force" in line for line in kept)
    assert {record.what for record in journal.read_journal()} == {
        "MCP entry",
        "skill",
        "prompt hook",
        "stop hook",
    }
    remaining = {file: file.read_text() for file in edits if file.exists()}
    assert "http://mine/mcp" in "".join(remaining.values())
    assert "--quiet" in "".join(remaining.values())
    assert remaining.keys() == edited.keys()
    with pytest.raises(Conflict, match="--force"):
        plan_setup(wishes(agent))
    assert disconnect(agent, force=True) == []
    assert journal.read_journal() == []
    left = "".join(file.read_text() for file in edits if file.exists())
    assert "hivemem" not in left and "http://mine" not in left


def test_foreign_entries_of_the_same_name_are_not_replaced_unasked(home: Path) -> None:
    (home / ".cursor").mkdir()
    file = home / ".cursor/mcp.json"
    file.write_text('{"mcpServers": {"hivemem": {"command": "hivemem", "args": ["mcp"]}, "b": 1}}')
    before = snapshot(home)
    with pytest.raises(Conflict, match=r"mcp\.json: mcpServers\.hivemem is there already.*--force"):
        plan_setup(wishes("cursor"))
    assert snapshot(home) == before
    connect("cursor", force=True)
    assert json.loads(file.read_text())["mcpServers"]["hivemem"]["url"] == f"{URL}/mcp"
    disconnect("cursor")
    assert json.loads(file.read_text()) == {"mcpServers": {"b": 1}}


def test_an_entry_that_was_there_before_is_not_taken_out(home: Path) -> None:
    entry = part("cursor", "MCP entry")
    entry.file.parent.mkdir()
    entry.file.write_text(json.dumps({"mcpServers": {"hivemem": entry.entry.value}}))
    before = entry.file.read_bytes()
    connect("cursor")
    disconnect("cursor")
    assert entry.file.read_bytes() == before


def test_other_wishes_replace_what_setup_wrote_before(home: Path) -> None:
    file = home / ".claude/settings.json"
    file.parent.mkdir()
    file.write_text('{"model": "opus"}')
    connect("claude")
    said = connect("claude", url="https://memory.example.org", remote=True)
    assert sum("replaced" in line for line in said) == 3
    value = json.loads(file.read_text())
    assert len(value["hooks"]["UserPromptSubmit"]) == 1
    command = value["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"]
    assert command.endswith("hook prompt --agent claude --url https://memory.example.org")
    assert disconnect() == []
    assert file.read_text() == '{"model": "opus"}'


def test_a_key_is_referred_to_or_written_and_never_shown(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "hm_" + "5" * 64
    for agent in AGENTS:
        assert main(["setup", agent, "--url", URL, "--key", key, "--dry-run"]) == 0
    assert key not in (text := "".join(capsys.readouterr()))
    assert "Bearer hm_***" in text
    assert snapshot(home) == {}
    for agent in AGENTS:
        connect(agent, key=key)
    assert f"Bearer {key}" in (home / ".codex/config.toml").read_text()
    for name in ("keys.json", "setup.json"):
        assert (home / ".config/hivemem" / name).stat().st_mode & 0o777 == 0o600
    assert (home / ".config/hivemem").stat().st_mode & 0o777 == 0o700
    for agent in AGENTS:
        # The hooks of those that are left still need the key.
        assert json.loads((home / ".config/hivemem/keys.json").read_text()) == {URL: key}
        assert disconnect(agent) == []
    assert not (home / ".config").exists() or not list((home / ".config/hivemem").iterdir())


@pytest.mark.parametrize(
    ("agent", "what", "text"),
    [
        ("claude", "MCP entry", '{"mcpServers": {'),
        ("claude", "prompt hook", "hooks: yes"),
        ("codex", "MCP entry", "model = "),
        ("codex", "MCP entry", "mcp_servers = {}"),
        ("kimi", "stop hook", "hooks = []"),
        ("cursor", "stop hook", '{"hooks": {"stop": {}}}'),
        ("cursor", "MCP entry", b"\xff\xfe{\x00}\x00"),
    ],
)
def test_a_file_that_cannot_be_edited_stops_everything(home: Path, agent: str, what: str, text: Any) -> None:
    file = part(agent, what).file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = snapshot(home)
    with pytest.raises((InvalidInput, Conflict)) as raised:
        plan_setup(wishes(agent)).carry_out(removing=False)
    assert str(file) in raised.value.message
    assert snapshot(home) == before


def test_a_file_that_changes_under_our_hands_is_left(home: Path) -> None:
    file = home / ".claude.json"
    file.write_text("{}")
    plan = plan_setup(wishes("claude"))
    file.write_text('{"numStartups": 8}')
    with pytest.raises(Conflict, match="another program"):
        plan.carry_out(removing=False)
    assert file.read_text() == '{"numStartups": 8}'
    # The journal names what was to come; that is no harm, and a second run completes it.
    connect("claude")
    assert json.loads(file.read_text())["numStartups"] == 8
    assert disconnect() == []
    assert file.read_text() == '{"numStartups": 8}'


def test_the_journal_tells_what_was_written(home: Path) -> None:
    file = home / ".cursor/mcp.json"
    file.parent.mkdir()
    file.write_text("{}")
    connect("cursor")
    entry = next(one for one in journal.read_journal() if one.what == "MCP entry")
    assert (entry.agent, entry.file, entry.created) == ("cursor", str(file), False)
    assert entry.before == hashlib.sha256(b"{}").hexdigest()
    assert entry.after == hashlib.sha256(file.read_bytes()).hexdigest()
    assert entry.text in file.read_text()


@pytest.mark.parametrize(
    "content", ["", "[]", '{"version": 9, "entries": []}', '{"version": 1, "entries": [{}]}']
)
def test_a_journal_of_something_else_is_refused(home: Path, content: str) -> None:
    path = journal.journal_path()
    path.parent.mkdir(parents=True)
    path.write_text(content)
    with pytest.raises(Corruption, match="Move it away"):
        plan_setup(wishes("claude"))
    assert main(["uninstall"]) == 8


def test_agents_folders_follow_their_variables(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "KIMI_CODE_HOME"):
        monkeypatch.setenv(name, str(home / name))
    assert part("claude", "MCP entry").file == home / "CLAUDE_CONFIG_DIR/.claude.json"
    assert part("claude", "skill").file == home / "CLAUDE_CONFIG_DIR/skills/hivemem/SKILL.md"
    assert part("codex", "stop hook").file == home / "CODEX_HOME/hooks.json"
    assert part("kimi", "stop hook").file == home / "KIMI_CODE_HOME/config.toml"
    project = {"scope": Scope.PROJECT, "project": home / "p"}
    assert part("claude", "MCP entry", **project).file == home / "p/.mcp.json"
    assert part("codex", "MCP entry", **project).file == home / "p/.codex/config.toml"


def test_the_hook_that_is_written_can_be_run(home: Path) -> None:
    for scope in Scope:
        group: Any = part("claude", "prompt hook", scope=scope, project=home, data_dir="/a b/c").entry.value
        command = group["hooks"][0]["command"]
        assert command.endswith("hook prompt --agent claude --data-dir '/a b/c'")
        if scope is Scope.PROJECT:
            assert command.startswith("hivemem hook ")
            continue
        done = subprocess.run(command, shell=True, input=b'{"prompt": "x"}', capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_skill_has_the_header_that_agents_read() -> None:
    first, header, body = skill_text().split("---\n", 2)
    assert first == ""
    fields = dict(line.split(": ", 1) for line in header.splitlines())
    assert fields["name"] == "hivemem"
    assert 50 < len(fields["description"]) <= 1_024
    assert len(body.splitlines()) < 100
    for tool in ("hm_recall", "hm_store", "hm_get_nodes"):
        assert tool in body


def test_the_command_line(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    assert main(["setup", "cursor", "--dry-run"]) == 0
    shown = capsys.readouterr()
    assert f"+++ {home / '.cursor/mcp.json'}" in shown.out
    assert "nothing was written" in shown.err
    assert snapshot(home) == {}
    assert main(["setup", "cursor", "--url", f"{URL}/mcp/"]) == 0
    shown = capsys.readouterr()
    assert "MCP entry: added in" in shown.out
    assert "HM_API_KEY" in shown.out
    assert json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["hivemem"]["url"] == f"{URL}/mcp"
    assert main(["setup", "cursor", "--url", URL, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == []
    assert main(["uninstall", "--scope", "project"]) == 0
    assert "nothing" in capsys.readouterr().out
    assert main(["uninstall", "cursor", "--dry-run"]) == 0
    assert (home / ".cursor/mcp.json").exists()
    file = home / ".cursor/mcp.json"
    file.write_text(file.read_text().replace(URL, "http://mine"))
    capsys.readouterr()
    assert main(["uninstall", "cursor"]) == 6
    assert "kept: MCP entry" in capsys.readouterr().err
    assert main(["uninstall", "--force"]) == 0
    assert not (home / ".cursor").exists()


@pytest.mark.parametrize(
    "options",
    [["--url", "127.0.0.1"], ["--url", "http://a b"], ["--url", "http://u:p@h"], ["--key", "x y z 1 2 3"]],
)
def test_bad_options_are_usage_errors(home: Path, options: list[str]) -> None:
    assert main(["setup", "claude", *options]) == 2
    assert snapshot(home) == {}
