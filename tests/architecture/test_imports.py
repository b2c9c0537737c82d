"""The direction of imports, read from the source: lower parts know nothing of higher ones."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "hivemem"

_LEARNED = {"domain", "ports", "retrieval"}

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "domain": set(),
    "ports": {"domain"},
    "retrieval": {"domain"},
    "projection": _LEARNED,
    "storage": _LEARNED | {"waiting"},
    "models": _LEARNED | {"waiting"},
    "documents": _LEARNED,
    "enrichment": _LEARNED,
    "service": _LEARNED | {"projection", "storage", "models", "documents", "enrichment"},
    "settings": {"service"},
    "server_lock": set(),
    "waiting": set(),
    "surfaces": {"domain", "ports", "retrieval", "models", "documents", "service", "settings", "server_lock"},
    "app": _LEARNED | {"projection", "storage", "models", "documents", "enrichment", "service", "settings"},
}
"""For each part the others that it may import; itself, `errors` and the version are free to all."""

EXCEPTIONS = {
    ("surfaces/cli/local.py", "hivemem.app"): "a command composes the program that it then runs",
    ("surfaces/cli/evaluate.py", "hivemem.app"): "the evaluation composes a program for each data set",
}
"""(file, module) -> why this import is right all the same."""

LAZY = {
    "app.py": "the driver of PostgreSQL need not be installed",
    "service/database_urls.py": "as app",
    "service/schema.py": "as app",
    "documents/extract.py": "half of a worker's start would be pypdf, which most files do not need",
    "settings.py": "most commands only name the data folder; `--version` must not wait for platformdirs",
    "surfaces/cli/backup.py": "as config",
    "surfaces/cli/database.py": "as config",
    "surfaces/cli/copying.py": "as config",
    "surfaces/cli/config.py": "commands start fast: each imports what it needs when it runs",
    "surfaces/cli/doctor.py": "as config",
    "surfaces/cli/export.py": "as config",
    "surfaces/cli/importing.py": "as config",
    "surfaces/cli/administration.py": "as config",
    "surfaces/cli/local.py": "as config, and the models and numpy come with the composition root",
    "surfaces/cli/main.py": "as config; a hook must not wait for argparse",
    "surfaces/cli/operations.py": "as config",
    "surfaces/cli/reembed.py": "as config",
    "surfaces/cli/restore.py": "a node and a backup need different things",
    "surfaces/cli/serve.py": "as config; the web server and uvloop are heavy, the latter is not everywhere",
    "surfaces/cli/setup.py": "as config",
    "surfaces/cli/skill.py": "as config",
    "surfaces/cli/upload.py": "as config",
    "surfaces/observability/watching.py": "packages of an extra, and never loaded without the setting",
    "surfaces/cli/stdio.py": "as config",
    "surfaces/oauth/routes.py": "as watching: the client of an identity provider",
    "surfaces/running_server.py": "before every prompt; most servers need neither TLS nor a settings file",
}
"""Files that may import inside functions, and why."""


@dataclass(frozen=True)
class Import:
    """One imported module, as an absolute name."""

    file: str
    line: int
    module: str
    inside_function: bool


def part_of(module: str) -> str:
    """`domain` for `hivemem.domain.node`; empty for the package itself."""
    return module.removeprefix("hivemem").strip(".").split(".")[0]


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imports(file: str, tree: ast.AST, *, inside: bool = False) -> Iterator[Import]:
    for child in ast.iter_child_nodes(tree):
        within = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(child, ast.Import):
            for name in child.names:
                yield Import(file, child.lineno, name.name, inside)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{file}:{child.lineno} imports relatively"
            module = child.module or ""
            if module == "hivemem":
                for name in child.names:
                    yield Import(file, child.lineno, f"hivemem.{name.name}", inside)
            else:
                yield Import(file, child.lineno, module, inside)
        else:
            yield from imports(file, child, inside=within)


SOURCES = dict(sources())
IMPORTS = [one for file, tree in SOURCES.items() for one in imports(file, tree)]
OWN = [one for one in IMPORTS if one.module == "hivemem" or one.module.startswith("hivemem.")]


def own_part(file: str) -> str:
    return file.removesuffix(".py").split("/")[0]


def test_the_reader_sees_the_source() -> None:
    assert len(SOURCES) > 50
    assert any(one.module == "hivemem.domain.node" and one.file == "ports/store.py" for one in OWN)
    assert any(one.inside_function for one in IMPORTS)


def test_every_part_has_its_place() -> None:
    parts = {own_part(file) for file in SOURCES} - {"__init__", "__main__"}
    assert parts <= set(MAY_IMPORT), "name what the new part may import"


def test_imports_go_one_way() -> None:
    wrong = [
        f"{one.file}:{one.line} imports {one.module}"
        for one in OWN
        if part_of(one.module) not in {"", "__version__", "errors", own_part(one.file)}
        and part_of(one.module) not in MAY_IMPORT.get(own_part(one.file), set())
        and (one.file, one.module) not in EXCEPTIONS
    ]
    assert wrong == []


def test_every_exception_is_used() -> None:
    used = {(one.file, one.module) for one in OWN}
    assert set(EXCEPTIONS) <= used


def test_functions_import_nothing_except_where_it_saves_starting_time() -> None:
    lazy = {one.file for one in IMPORTS if one.inside_function}
    assert lazy == set(LAZY), "move the import to the top, or say why not"


def test_the_order_of_parts_has_no_circle() -> None:
    reached: dict[str, set[str]] = {}

    def below(part: str, path: tuple[str, ...]) -> set[str]:
        assert part not in path, f"a circle: {' -> '.join((*path, part))}"
        if part not in reached:
            found = set(MAY_IMPORT[part])
            for other in MAY_IMPORT[part]:
                found |= below(other, (*path, part))
            reached[part] = found
        return reached[part]

    for part in MAY_IMPORT:
        below(part, ())


@pytest.mark.parametrize("part", ["errors", "domain", "ports", "retrieval"])
def test_the_pure_parts_touch_neither_files_nor_network_nor_threads(part: str) -> None:
    forbidden = {"asyncio", "os", "pathlib", "socket", "sqlite3", "subprocess", "threading", "random"}
    used = {
        (one.file, one.module)
        for one in IMPORTS
        if own_part(one.file) == part and one.module.split(".")[0] in forbidden
    }
    assert used == set()


def test_the_domain_is_standard_library_alone() -> None:
    foreign = {
        one.module
        for one in IMPORTS
        if own_part(one.file) in ("errors", "domain")
        and one.module.split(".")[0] not in {*sys.stdlib_module_names, "hivemem"}
    }
    assert foreign == set()


@pytest.mark.parametrize("file", sorted(SOURCES))
def test_every_module_says_what_it_is(file: str) -> None:
    told = ast.get_docstring(SOURCES[file])
    assert told, f"{file} has no docstring"
    assert len(told.splitlines()[0]) <= 120
