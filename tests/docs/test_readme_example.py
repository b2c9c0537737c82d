"""The first screen of the README, run with the bundled models."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from hivemem.surfaces.cli.main import main
from tests.docs.pages import REPOSITORY, blocks, shell_lines

README = REPOSITORY / "README.md"
_HIT = re.compile(r"^\d+\. \d\.\d+  (\S+)", re.MULTILINE)


@pytest.mark.models
def test_the_first_commands_of_the_readme_do_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HIVEMEM_DATA_DIR", str(tmp_path))
    commands = [shlex.split(line)[1:] for line in shell_lines(README) if line.startswith("hivemem ")]
    (store, recall, unanswerable), team = commands[:3], commands[3:]
    shown, nothing = [block.text for block in blocks(README, "text")][:2]
    printed: list[str] = []
    for command in (store, recall):
        assert main(command) == 0
        printed.append(capsys.readouterr().out)
    assert shown.startswith(printed[0])
    assert _HIT.findall(printed[1])[0] == _HIT.findall(shown)[0]
    assert "was chosen for sessions over signed cookies" in printed[1]
    assert main(unanswerable) == 0
    assert capsys.readouterr().out == nothing
    assert [main(command) for command in team] == [0] * len(team) != []
