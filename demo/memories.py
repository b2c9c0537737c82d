"""This repository as a memory graph: decisions, components, technologies, and what relates them.

Everything is read from files: the pages of `docs/decisions`, the modules below `src/hivemem` with their
docstrings and imports, and the descriptions of the installed packages. Each node is a dictionary as
`hm_store` and `hivemem import` take it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

PACKAGE = "hivemem"
MAX_DESCRIPTION = 1_200
_NAMES_IN_LABEL = 6

Memory = dict[str, object]


def repository_memories(root: Path) -> list[Memory]:
    """All nodes of the repository at `root`: decisions, components, then technologies.

    Keys are unique and follow the `type_name` convention; each relationship leads to a node of the list.
    """
    modules = read_modules(root / "src" / PACKAGE)
    distributions = metadata.packages_distributions()
    packages = sorted({name for module in modules.values() for name in module.packages})
    names = {package: distributions.get(package, [package])[0] for package in packages}
    pages = [page for page in sorted((root / "docs" / "decisions").glob("*.md")) if page.stem != "README"]
    decisions = {page: page.read_text("utf-8") for page in pages}
    return [
        *(decision(page.stem, text, names.values()) for page, text in decisions.items()),
        *(component(module, modules, names, decisions) for module in modules.values()),
        *(technology(name) for name in sorted(set(names.values()))),
    ]


def decision(slug: str, text: str, distributions: Iterable[str]) -> Memory:
    """A page of `docs/decisions`: its title and opening as description, all of it as search text."""
    title, _, rest = text.partition("\n")
    title = title.lstrip("# ").strip()
    description = f"{title}\n\n{opening(rest)}"
    memory: Memory = {
        "key": decision_key(slug),
        "node_type": "decision",
        "description": description,
        "data": {"page": f"docs/decisions/{slug}.md"},
        "relationships": [
            {"to_key": technology_key(name), "relationship": f"discusses {name}"}
            for name in sorted(set(distributions))
            if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text, re.IGNORECASE)
        ],
    }
    if len(text) > len(description):
        memory["search_text"] = text
    return memory


def opening(text: str) -> str:
    """The first paragraphs of a page, up to its first heading or table and `MAX_DESCRIPTION` characters."""
    kept: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.startswith(("#", "|")):
            break
        line = " ".join(paragraph.replace("**", "").split())
        if kept and sum(map(len, kept)) + len(line) > MAX_DESCRIPTION:
            break
        kept.append(line)
    return "\n\n".join(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """What the sources say of one module.

    Attributes:
        name: Dotted.
        path: Relative to the package, such as `retrieval/fuse.py`.
        docstring: Whole.
        parts: Public classes and functions, with the first line of their docstrings.
        imports: Modules of this package -> the names that are taken from them.
        packages: Top-level names of imported packages that are neither ours nor Python's.
    """

    name: str
    path: str
    lines: int
    docstring: str
    parts: Mapping[str, str] = field(default_factory=dict)
    imports: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    packages: tuple[str, ...] = ()


def read_modules(package: Path) -> dict[str, Module]:
    """Every module below the folder `package` that has a docstring, by dotted name, sorted."""
    paths = sorted(package.rglob("*.py"))
    names = {path: _module_name(package, path) for path in paths}
    known = frozenset(names.values())
    modules: dict[str, Module] = {}
    for path in paths:
        source = path.read_text("utf-8")
        tree = ast.parse(source)
        docstring = ast.get_docstring(tree)
        if docstring is None:
            continue
        imports, packages = _imports(tree, known)
        modules[names[path]] = Module(
            name=names[path],
            path=path.relative_to(package).as_posix(),
            lines=source.count("\n"),
            docstring=docstring,
            parts=_parts(tree),
            imports=imports,
            packages=packages,
        )
    return {
        name: Module(
            name=module.name,
            path=module.path,
            lines=module.lines,
            docstring=module.docstring,
            parts=module.parts,
            imports={target: taken for target, taken in module.imports.items() if target in modules},
            packages=module.packages,
        )
        for name, module in modules.items()
    }


def _module_name(package: Path, path: Path) -> str:
    parts = (package.name, *path.relative_to(package).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _parts(tree: ast.Module) -> dict[str, str]:
    found: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(statement)
            if said and not statement.name.startswith("_"):
                found[statement.name] = said.partition("\n")[0]
    return found


def _imports(tree: ast.Module, known: frozenset[str]) -> tuple[dict[str, tuple[str, ...]], tuple[str, ...]]:
    """(our modules -> names taken from them, other packages), sorted."""
    own: defaultdict[str, set[str]] = defaultdict(set)
    packages: set[str] = set()
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            targets = [(alias.name, "") for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module:
            targets = [(statement.module, alias.name) for alias in statement.names]
        else:
            continue
        for module, name in targets:
            top = module.partition(".")[0]
            if top == PACKAGE:
                # `from package import module` takes the module, not a name of the package.
                whole = f"{module}.{name}" if f"{module}.{name}" in known else module
                own[whole].update({name} if name and whole == module else ())
            elif top not in sys.stdlib_module_names:
                packages.add(top)
    return {module: tuple(sorted(names)) for module, names in sorted(own.items())}, tuple(sorted(packages))


def component(
    module: Module,
    modules: Mapping[str, Module],
    distributions: Mapping[str, str],
    decisions: Mapping[Path, str],
) -> Memory:
    """A module: its docstring as description, its classes and functions as search text.

    Args:
        module: The module.
        modules: All modules, by name.
        distributions: Imported package -> name of its distribution.
        decisions: Pages and their texts; one that names the module's file explains it.
    """
    memory: Memory = {
        "key": component_key(module.name),
        "node_type": "component",
        "description": f"{module.name}: {module.docstring}",
        "data": {"path": f"src/{PACKAGE}/{module.path}", "lines": module.lines},
        "relationships": [
            *(
                {"to_key": decision_key(page.stem), "relationship": "is explained by"}
                for page, text in decisions.items()
                if f"`{module.path}`" in text or f"`{PACKAGE}/{module.path}`" in text
            ),
            *(
                {"to_key": component_key(target), "relationship": _import_label(names)}
                for target, names in module.imports.items()
                if target in modules and target != module.name
            ),
            *(
                {"to_key": technology_key(distributions[name]), "relationship": f"is built on {name}"}
                for name in module.packages
            ),
        ],
    }
    if module.parts:
        memory["search_text"] = "\n".join(f"{name}: {said}" for name, said in module.parts.items())
    return memory


def _import_label(names: tuple[str, ...]) -> str:
    if not names:
        return "imports this module"
    shown = ", ".join(names[:_NAMES_IN_LABEL])
    more = len(names) - _NAMES_IN_LABEL
    return f"imports {shown}" + (f" and {more} more" if more > 0 else "")


def technology(distribution: str) -> Memory:
    """An installed package: what its metadata says it is."""
    try:
        installed = metadata.metadata(distribution)
        summary, version = installed["Summary"] or "", installed["Version"]
    except metadata.PackageNotFoundError:
        summary, version = "", None
    memory: Memory = {
        "key": technology_key(distribution),
        "node_type": "technology",
        "description": f"{distribution}: {summary or 'a Python package'}",
    }
    if version is not None:
        memory["data"] = {"version": version}
    return memory


def decision_key(slug: str) -> str:
    """The key of the page `docs/decisions/<slug>.md`."""
    return f"decision_{_snake(slug)}"


def component_key(module: str) -> str:
    """The key of a module by its dotted name; the package's own name is left out below it."""
    return f"component_{_snake(module.removeprefix(PACKAGE + '.'))}"


def technology_key(distribution: str) -> str:
    """The key of a package by the name of its distribution."""
    return f"technology_{_snake(distribution)}"


def _snake(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
