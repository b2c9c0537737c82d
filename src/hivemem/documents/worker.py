"""The worker process: one task over one file, under limits of the operating system, then the end.

It reads a line of JSON and the bytes of the file from standard input, and writes one JSON object to
standard output. It opens no file and no connection, and its environment is empty. What comes back is
data alone, so that even code running in here could only give a wrong answer.
"""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import asdict
from typing import Any

from hivemem.documents.errors_told import FAMILIES
from hivemem.documents.extract import extract_text
from hivemem.documents.kinds import TABULAR, kind_of
from hivemem.documents.limits import DocumentLimits
from hivemem.documents.summary import summarise
from hivemem.documents.tabular.csv_file import CsvWorkbook
from hivemem.documents.tabular.outline import cell_range, outline
from hivemem.documents.tabular.search import search
from hivemem.documents.tabular.trace import trace
from hivemem.documents.tabular.workbook import Workbook
from hivemem.documents.tabular.xlsx import XlsxWorkbook
from hivemem.errors import HivememError, InvalidInput


def perform(task: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Carry out a task and return its answer as JSON.

    A task has `filename`, `limits`, `mode` (`read`, `outline`, `range`, `search` or `trace`) and
    `arguments`, which the function of that mode takes.

    Raises:
        HivememError: As that function says.
    """
    limits = DocumentLimits(**task["limits"])
    filename: str = task["filename"]
    arguments: dict[str, Any] = task["arguments"]
    kind = kind_of(data, filename, limits)
    if task["mode"] == "read":
        extracted = extract_text(data, filename, kind, limits)
        summary = summarise(extracted.text, title=extracted.title, **arguments)
        return {"kind": kind.name, **asdict(extracted), "summary": summary}
    if kind.name not in TABULAR:
        raise InvalidInput(
            f"{filename!r} is {kind.name}, which has no cells; ask about a file of "
            f"{' or '.join(sorted(TABULAR))}.",
            code="file_not_tabular",
        )
    workbook: Workbook = (CsvWorkbook if kind.name == "csv" else XlsxWorkbook)(data, filename, limits)
    match task["mode"]:
        case "outline":
            return asdict(outline(workbook, limits, **arguments))
        case "range":
            return asdict(cell_range(workbook, **arguments))
        case "search":
            return asdict(search(workbook, limits, **arguments))
        case _:
            return asdict(trace(workbook, limits, **arguments))


def answer(line: bytes, data: bytes) -> dict[str, Any]:
    """What the process writes: `{"answer": ...}` or `{"error": ...}`; nothing is raised."""
    task = json.loads(line)
    try:
        return {"answer": perform(task, data)}
    except HivememError as error:
        family = next(name for name, kind in FAMILIES.items() if isinstance(error, kind))
        return {
            "error": {"family": family, "message": error.message, "code": error.code, "facts": error.facts}
        }
    except MemoryError:
        return {"error": {"family": "memory"}}
    except Exception as error:  # whatever a parser trips over is a property of the file
        return {"error": {"family": "crash", "message": f"{type(error).__name__}: {error}"[:500]}}


def restrict(limits: DocumentLimits) -> None:
    """Give up what the task does not need: memory, time, files and processes."""
    for what, value in (
        (resource.RLIMIT_AS, limits.max_memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (ceiling, ceiling))
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = limits.max_seconds if hard == resource.RLIM_INFINITY else min(limits.max_seconds, hard)
    # The soft limit ends the process by a signal of its own, by which the caller knows the cause.
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard if hard != resource.RLIM_INFINITY else soft + 1))


def main() -> None:
    """Serve one task."""
    line = sys.stdin.buffer.readline()
    restrict(DocumentLimits(**json.loads(line)["limits"]))
    try:
        told = json.dumps(answer(line, sys.stdin.buffer.read()))
    except MemoryError:
        told = json.dumps({"error": {"family": "memory"}})
    sys.stdout.write(told)
    sys.stdout.flush()
