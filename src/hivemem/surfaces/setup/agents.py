"""What each agent's files hold when it is connected: the MCP entry, the skill, the hooks.

Formats as the agents document them; docs/operating/agents.md says what of them was not tried in the agent
itself.
"""

from __future__ import annotations

import enum
import os
import shlex
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from hivemem.surfaces.running_server import KEY_VARIABLE, SAVED_KEYS_FILE, config_folder
from hivemem.surfaces.setup.entry import Entry
from hivemem.surfaces.setup.jsonc import JsonValue

KEY_PART = "key for the hooks"
AGENTS = ("claude", "codex", "cursor", "kimi")

_HOOK_SECONDS = 10


class Scope(enum.StrEnum):
    """For all of a user's work, or for one project folder."""

    USER = "user"
    PROJECT = "project"


class Format(enum.StrEnum):
    """How a file is read and edited; a `TEXT` file is ours as a whole."""

    JSON = "json"
    TOML = "toml"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that setup puts into one file.

    Attributes:
        what: In words, unique within an agent.
        entry: For `TEXT` its value is the content, and its path means nothing.
        only_if_absent: Whether any value at the place is as good as ours.
        private: Whether the file, when it is made, is for the user alone.
    """

    what: str
    file: Path
    format: Format
    entry: Entry
    only_if_absent: bool = False
    private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the user asked for.

    Attributes:
        url: Base URL of the server, without a trailing slash.
        key: A credential to write down; None refers to the variable HM_API_KEY.
        remote: Whether `url` was named, so that hooks must be told it too.
        data_dir: A data directory other than the default one, for the hooks.
        project: The project's folder, for the project scope.
    """

    agent: str
    scope: Scope
    url: str
    key: str | None = None
    remote: bool = False
    data_dir: str | None = None
    project: Path | None = None


def parts(wishes: Wishes) -> list[Part]:
    """All that setup writes for an agent, in the order in which it is written."""
    make = {"claude": _claude, "codex": _codex, "cursor": _cursor, "kimi": _kimi}[wishes.agent]
    found = make(wishes)
    if wishes.key is not None:
        saved = Entry(path=(wishes.url,), value=wishes.key)
        file = Path(config_folder()) / SAVED_KEYS_FILE
        found.append(Part(what=KEY_PART, file=file, format=Format.JSON, entry=saved, private=True))
    return found


def notes(wishes: Wishes) -> list[str]:
    """What the user still has to do or know, one sentence each."""
    said: list[str] = []
    if wishes.key is None and not os.environ.get(KEY_VARIABLE):
        said.append(
            f"set {KEY_VARIABLE} in the environment that starts the agent; `hivemem key create` makes a key."
        )
    if wishes.key is not None and wishes.scope is Scope.PROJECT:
        said.append("the key now stands in a file of the project; keep that file out of version control.")
    if wishes.agent == "codex":
        said.append("Codex runs new hooks only after you have trusted them: open /hooks in it once.")
    if wishes.agent == "cursor":
        said.append("versions of Cursor that ignore additional_context show no memories before prompts.")
    if wishes.agent == "kimi" and wishes.scope is Scope.PROJECT:
        said.append("Kimi reads hooks from the user's files only, so this project has none.")
    said.append("restart the agent, or begin a new session, to load the changes.")
    return said


def skill_text() -> str:
    """The skill, in Markdown with a header that agents read."""
    return resources.files("hivemem.surfaces.setup").joinpath("skill.md").read_text("utf-8")


def _claude(wishes: Wishes) -> list[Part]:
    header = f"Bearer {_key(wishes, f'${{{KEY_VARIABLE}}}')}"
    server: JsonValue = {"type": "http", "url": _mcp(wishes), "headers": {"Authorization": header}}
    own = os.environ.get("CLAUDE_CONFIG_DIR", "").strip()
    base = _base(wishes, ".claude", "CLAUDE_CONFIG_DIR")
    if wishes.scope is Scope.PROJECT:
        servers = _root(wishes) / ".mcp.json"
    else:
        servers = (Path(own).expanduser() if own else Path.home()) / ".claude.json"
    return [
        _json("MCP entry", servers, ("mcpServers", "hivemem"), server),
        _skill(base / "skills"),
        *_grouped_hooks(wishes, base / "settings.json"),
    ]


def _codex(wishes: Wishes) -> list[Part]:
    server: dict[str, JsonValue] = {"url": _mcp(wishes)}
    if wishes.key is None:
        server["bearer_token_env_var"] = KEY_VARIABLE
    else:
        server["http_headers"] = {"Authorization": f"Bearer {wishes.key}"}
    base = _base(wishes, ".codex", "CODEX_HOME")
    entry = Entry(path=("mcp_servers", "hivemem"), value=server)
    return [
        Part(what="MCP entry", file=base / "config.toml", format=Format.TOML, entry=entry),
        _skill(_root(wishes) / ".agents" / "skills"),
        *_grouped_hooks(wishes, base / "hooks.json"),
    ]


def _cursor(wishes: Wishes) -> list[Part]:
    header = f"Bearer {_key(wishes, f'${{env:{KEY_VARIABLE}}}')}"
    server: JsonValue = {"url": _mcp(wishes), "headers": {"Authorization": header}}
    base = _root(wishes) / ".cursor"
    hooks = base / "hooks.json"
    version = Entry(path=("version",), value=1)
    return [
        _json("MCP entry", base / "mcp.json", ("mcpServers", "hivemem"), server),
        _skill(base / "skills"),
        Part(what="hooks version", file=hooks, format=Format.JSON, entry=version, only_if_absent=True),
        _json(
            "prompt hook", hooks, ("hooks", "beforeSubmitPrompt"), {"command": _hook(wishes, "prompt")}, True
        ),
        _json("stop hook", hooks, ("hooks", "stop"), {"command": _hook(wishes, "stop")}, True),
    ]


def _kimi(wishes: Wishes) -> list[Part]:
    server: dict[str, JsonValue] = {"url": _mcp(wishes)}
    if wishes.key is None:
        server["bearerTokenEnvVar"] = KEY_VARIABLE
    else:
        server["headers"] = {"Authorization": f"Bearer {wishes.key}"}
    base = _base(wishes, ".kimi-code", "KIMI_CODE_HOME")
    found = [
        _json("MCP entry", base / "mcp.json", ("mcpServers", "hivemem"), server),
        _skill(base / "skills"),
    ]
    if wishes.scope is Scope.PROJECT:
        return found
    for what, event, name in (("prompt hook", "UserPromptSubmit", "prompt"), ("stop hook", "Stop", "stop")):
        hook: JsonValue = {"event": event, "command": _hook(wishes, name), "timeout": _HOOK_SECONDS}
        entry = Entry(path=("hooks",), value=hook, in_array=True)
        found.append(Part(what=what, file=base / "config.toml", format=Format.TOML, entry=entry))
    return found


def _grouped_hooks(wishes: Wishes, file: Path) -> list[Part]:
    """The hooks in the form that Claude Code and Codex share."""
    found: list[Part] = []
    for what, event, name in (("prompt hook", "UserPromptSubmit", "prompt"), ("stop hook", "Stop", "stop")):
        hook: JsonValue = {"type": "command", "command": _hook(wishes, name), "timeout": _HOOK_SECONDS}
        found.append(_json(what, file, ("hooks", event), {"hooks": [hook]}, True))
    return found


def _json(what: str, file: Path, path: tuple[str, ...], value: JsonValue, in_array: bool = False) -> Part:
    entry = Entry(path=path, value=value, in_array=in_array)
    return Part(what=what, file=file, format=Format.JSON, entry=entry)


def _skill(folder: Path) -> Part:
    entry = Entry(path=("skill",), value=skill_text())
    return Part(what="skill", file=folder / "hivemem" / "SKILL.md", format=Format.TEXT, entry=entry)


def _root(wishes: Wishes) -> Path:
    if wishes.scope is Scope.PROJECT:
        return wishes.project or Path.cwd()
    return Path.home()


def _base(wishes: Wishes, name: str, variable: str) -> Path:
    """The agent's folder: in the project, where its variable says, or in the home folder."""
    own = os.environ.get(variable, "").strip()
    if wishes.scope is Scope.USER and own:
        return Path(own).expanduser()
    return _root(wishes) / name


def _mcp(wishes: Wishes) -> str:
    return f"{wishes.url}/mcp"


def _key(wishes: Wishes, reference: str) -> str:
    return reference if wishes.key is None else wishes.key


def _hook(wishes: Wishes, event: str) -> str:
    words = [*_program(wishes), "hook", event, "--agent", wishes.agent]
    if wishes.remote:
        words += ["--url", wishes.url]
    if wishes.data_dir is not None:
        words += ["--data-dir", wishes.data_dir]
    return shlex.join(words)


def _program(wishes: Wishes) -> list[str]:
    """How a hook calls this program.

    An agent that was started from a desktop has another PATH than a shell, so the user's own files name the
    program by its whole path. A project's files are for other machines too.
    """
    if wishes.scope is Scope.PROJECT:
        return ["hivemem"]
    script = Path(sys.executable).parent / "hivemem"
    if script.is_file() and os.access(script, os.X_OK):
        return [str(script)]
    return [sys.executable, "-m", "hivemem.surfaces.cli.main"]
