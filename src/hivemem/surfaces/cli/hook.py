"""`hivemem hook`: what agents run before a prompt and at the end of a turn.

Two rules stand above everything. A hook never gets in the way: whatever goes wrong, it prints nothing and
ends with 0. And it is quick: `main` comes here before it imports anything else, and nothing here imports more
than light parts of the standard library.
"""

from __future__ import annotations

import _thread
import json
import os
import re
import sys
import time

from hivemem.surfaces.cli.hook_text import REMINDER, context
from hivemem.surfaces.running_server import (
    NoAnswer,
    Target,
    ask,
    data_folder,
    file_settings,
    find_server,
    number_setting,
    user_folder,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

DEFAULTS = {
    "hook_timeout_seconds": 2.5,
    "hook_max_results": 5,
    "hook_max_characters": 4_000,
    "hook_reminder_turns": 5,
}
"""Those of the settings of the same names."""

AGENTS = ("claude", "codex", "cursor", "kimi", "plain")

_OPTIONS = ("--agent", "--url", "--data-dir")
_MAX_INPUT_BYTES = 8 * 1024 * 1024
_QUERY_CHARACTERS = 1_000
_MAX_SESSION_CHARACTERS = 200
_STOP_SECONDS = 1.0
_LOG_BYTES = 200_000
_SESSION_DAYS = 30
_TRANSCRIPT_BYTES = 30 * 1024 * 1024

# `/review`, `/mcp:tool more words`; but not a path such as /etc/hosts.
_SLASH_COMMAND = re.compile(r"/[A-Za-z][\w:.-]*(\s|$)")
_STORED = re.compile(
    rb'"(?:name|tool|tool_name)"\s*:\s*"[^"]{0,80}hm_(?:store|update|ingest|add_relationships|timeline_write)"'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options, for `--help`; `run_hook` reads them itself."""
    parser.add_argument("event", choices=("prompt", "stop"), help="before a prompt, or at the end of a turn")
    parser.add_argument("--agent", choices=AGENTS, default=None, help="whose format to read and write")
    parser.add_argument("--url", default=None, help="base URL of the server; else the one that runs here")


def run(arguments: argparse.Namespace) -> int:
    """Run a hook whose options stood before its verb."""
    given = [arguments.event]
    for option in _OPTIONS:
        value = getattr(arguments, option[2:].replace("-", "_"), None)
        given += [option, value] if value else []
    return run_hook(given)


def run_hook(arguments: Sequence[str]) -> int:
    """Read the event from standard input, answer on standard output, and return 0 whatever happens."""
    event = arguments[0] if arguments else ""
    try:
        options = _options(arguments[1:])
        folder = data_folder(options.get("--data-dir"))
        in_file = file_settings(folder)
        seconds = number_setting("hook_timeout_seconds", DEFAULTS["hook_timeout_seconds"], in_file)
        # Looking up a host name, and reading an input that never ends, obey no time limit of a socket.
        _thread.start_new_thread(_end_after, (seconds + 1.0, event))
        payload = _payload(sys.stdin.buffer.read(_MAX_INPUT_BYTES))
        target = find_server(folder, in_file, options.get("--url"))
        if target is None:
            return 0
        agent = options.get("--agent") or _agent(payload)
        if event == "prompt":
            _write(_before_prompt(payload, agent, target, time.monotonic() + seconds, in_file))
        elif event == "stop":
            turns = number_setting("hook_reminder_turns", DEFAULTS["hook_reminder_turns"], in_file)
            _write(_at_stop(payload, agent, target, int(turns)))
    except NoAnswer as error:
        _log(event, str(error))
    except BaseException as error:  # an agent must never see a traceback, nor an interrupt
        _log(event, f"{type(error).__name__}: {error}")
    return 0


def _before_prompt(
    payload: dict[str, object], agent: str, target: Target, until: float, in_file: dict[str, object]
) -> str:
    prompt = payload.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip() or _SLASH_COMMAND.match(prompt.strip()):
        return ""
    number = {name: int(number_setting(name, DEFAULTS[name], in_file)) for name in DEFAULTS}
    body: dict[str, object] = {"query": _query(prompt), "max_results": number["hook_max_results"]}
    session = _session(payload)
    if session:
        body["session_id"] = session
    status, _, answer = ask(target, "POST", "/api/v1/memory/recall", body, until=until)
    if status != 200:
        raise NoAnswer(f"{target.url} answered {status}")
    text = context(json.loads(answer), number["hook_max_characters"])
    if not text:
        return ""
    if agent == "cursor":
        return json.dumps({"continue": True, "additional_context": text})
    if agent in ("claude", "codex"):
        specific = {"hookEventName": "UserPromptSubmit", "additionalContext": text}
        return json.dumps({"hookSpecificOutput": specific})
    return text


def _at_stop(payload: dict[str, object], agent: str, target: Target, turns_until_reminder: int) -> str:
    """A reminder in the agent's format, at most once in a session; nearly always empty."""
    continued = payload.get("stop_hook_active") or payload.get("loop_count")
    session = _session(payload)
    if turns_until_reminder < 1 or continued or not session or agent == "plain":
        return ""
    if payload.get("status") not in (None, "completed"):
        return ""
    note = os.path.join(_state_folder(), "sessions", re.sub(r"[^A-Za-z0-9_-]", "_", session))
    turns = _turns(note)
    if turns is None:
        return ""
    reached = turns + 1 >= turns_until_reminder
    # Noted before anything is printed: rather no reminder than a second one.
    _write_note(note, "done" if reached else str(turns + 1))
    if not reached or _has_stored(payload.get("transcript_path")):
        return ""
    ask(target, "GET", "/health", until=time.monotonic() + _STOP_SECONDS)
    if agent == "cursor":
        return json.dumps({"followup_message": REMINDER})
    if agent == "kimi":
        denied = {"permissionDecision": "deny", "permissionDecisionReason": REMINDER}
        return json.dumps({"hookSpecificOutput": denied})
    return json.dumps({"decision": "block", "reason": REMINDER})


def _options(arguments: Sequence[str]) -> dict[str, str]:
    """`--name value` and `--name=value`; what is unknown is passed over, as a later version may write it."""
    found: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if name in _OPTIONS:
            found[name] = value if equals else next(words, "")
    return found


def _payload(content: bytes) -> dict[str, object]:
    """The event: an agent's JSON object, or a prompt as plain text."""
    text = content.decode("utf-8", errors="replace")
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {"prompt": text}


def _agent(payload: dict[str, object]) -> str:
    """Whose event this is, from what only that agent sends."""
    if str(payload.get("client_type", "")).startswith("kimi"):
        return "kimi"
    if "cursor_version" in payload or payload.get("hook_event_name") in ("beforeSubmitPrompt", "stop"):
        return "cursor"
    return "claude" if "hook_event_name" in payload else "plain"


def _session(payload: dict[str, object]) -> str:
    given = payload.get("session_id") or payload.get("conversation_id")
    return given[:_MAX_SESSION_CHARACTERS] if isinstance(given, str) else ""


def _query(prompt: str) -> str:
    """A prompt as a query: long ones by their beginning and their end, where the question mostly stands."""
    text = prompt.strip()
    half = _QUERY_CHARACTERS // 2
    return text if len(text) <= _QUERY_CHARACTERS else f"{text[:half]}\n{text[-half:]}"


def _turns(note: str) -> int | None:
    """Turns of a session so far; None when it was reminded."""
    try:
        with open(note, encoding="ascii") as file:
            return int(file.read(20))
    except FileNotFoundError:
        return 0
    except ValueError:
        return None


def _write_note(note: str, text: str) -> None:
    folder = os.path.dirname(note)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not os.path.exists(note):
        oldest = time.time() - _SESSION_DAYS * 86_400
        for entry in os.scandir(folder):
            if entry.stat().st_mtime < oldest:
                os.unlink(entry.path)
    with open(note, "w", encoding="ascii") as file:
        file.write(text)


def _has_stored(transcript: object) -> bool:
    """Whether the agent used a writing tool, as far as the end of its transcript shows."""
    if not isinstance(transcript, str):
        return False
    try:
        with open(os.path.expanduser(transcript), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TRANSCRIPT_BYTES))
            return _STORED.search(file.read(_TRANSCRIPT_BYTES)) is not None
    except OSError:
        return False


def _state_folder() -> str:
    return user_folder("XDG_STATE_HOME", ".local", "state")


def _write(text: str) -> None:
    # Not through `sys.stdout`, which would complain at exit when the agent has closed its end.
    content = text.encode("utf-8", errors="replace")
    while content:
        content = content[os.write(1, content) :]


def _end_after(seconds: float, event: str) -> None:
    time.sleep(seconds)
    _log(event, f"ended after {seconds:g} seconds")
    os._exit(0)


def _log(event: str, message: str) -> None:
    """One line in `hook.log`, without the prompt; the file starts anew when it is large."""
    try:
        folder = _state_folder()
        os.makedirs(folder, mode=0o700, exist_ok=True)
        path = os.path.join(folder, "hook.log")
        large = os.path.exists(path) and os.path.getsize(path) > _LOG_BYTES
        with open(path, "w" if large else "a", encoding="utf-8", errors="replace") as file:
            when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            file.write(f"{when} {event} {message.splitlines()[0][:500] if message else ''}\n")
    except OSError:
        return
