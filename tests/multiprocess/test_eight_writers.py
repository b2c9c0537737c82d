"""Eight processes write one file at once through the real services, and others read it meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
WRITERS = 8
NODES = 500


def started(work: str, data_dir: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.multiprocess.one_process", work, str(data_dir), *arguments],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it printed, after its standard input was closed."""
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert errors == ""
    return json.loads(out)


@pytest.mark.timeout(240)
def test_eight_processes_store_500_nodes_each_and_lose_none(tmp_path: Path) -> None:
    assert ended(started("store", tmp_path, "early", "1"))["created"] == 1
    with ExitStack() as stack:
        reader = stack.enter_context(started("recall-until-closed", tmp_path, "early_0"))
        stack.callback(reader.kill)
        names = [f"writer{number}" for number in range(WRITERS)]
        writers = [stack.enter_context(started("store", tmp_path, name, str(NODES))) for name in names]
        for process in writers:
            stack.callback(process.kill)
        assert [ended(process) for process in writers] == [{"created": NODES, "stored": NODES}] * WRITERS
        # At once: nothing is opened, embedded or indexed between the last write and this process's start.
        last = [f"{name}_{NODES - 1}" for name in names]
        seen = ended(started("recall", tmp_path, *last))
        assert seen["first"] == last
        # With the one from before; the owner's blank profile does not count.
        assert seen["nodes"] == WRITERS * NODES + 1
        read = ended(reader)
        assert read["recalls"] > 0
        assert read["found"] == read["recalls"]
