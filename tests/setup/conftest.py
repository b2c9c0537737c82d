"""A home folder of its own for every test: setup and hooks write to the user's files."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.surfaces.serving import command, environment

AGENT_VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "KIMI_CODE_HOME", "HM_API_KEY")
FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder that this process and those it starts see."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in (*AGENT_VARIABLES, *FOLDERS):
        monkeypatch.delenv(name, raising=False)
    for name in list(os.environ):
        if name.startswith("HIVEMEM_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    return folder


Hook = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def hook(home: Path) -> Hook:
    """Runs `hivemem hook` as an agent does."""

    def run(
        event: str, payload: Any, *arguments: str, data_dir: Path | None = None, **extra: str
    ) -> subprocess.CompletedProcess[bytes]:
        content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        folder = ("--data-dir", str(data_dir)) if data_dir is not None else ()
        return subprocess.run(
            command("hook", event, *folder, *arguments),
            input=content,
            capture_output=True,
            # Ample, for machines that do other things as well.
            env=environment(**({"HIVEMEM_HOOK_TIMEOUT_SECONDS": "20"} | extra)),
            timeout=60,
            check=False,
        )

    return run
