"""The library that runs the models reports to nobody."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).resolve().parents[2] / "src"
PROGRAM = """
import sys
from hivemem.models.onnx import OnnxReranker
from hivemem.models.weights import RERANKER, packaged_files
reranker = OnnxReranker(packaged_files(RERANKER), threads=1)
print(len(reranker.score("what does Anna drink?", ["Anna drinks tea."])))
"""


@pytest.mark.models
def test_running_a_model_leaves_nothing_in_the_users_folders(tmp_path: Path) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(SOURCES),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM], env=environment, capture_output=True, timeout=60, check=True
    )
    assert done.stdout == b"1\n"
    # With its reports on, the library makes an identifier and a queue there at the first session.
    assert list(tmp_path.rglob("*")) == []


def test_only_the_silenced_module_imports_the_library() -> None:
    importing: list[str] = []
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            importing += [path.name for name in names if name.split(".")[0] == "onnxruntime"]
    assert importing == ["runtime.py"]
