"""What the pages say exists, does: links, commands, targets, settings, tools, files, dependencies."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from demo.show import KEY_VARIABLE, claude_entry, codex_entry, cursor_entry
from hivemem.settings import ENVIRONMENT_PREFIX, Settings, secret_names
from hivemem.surfaces.cli.main import VERBS, build_parser
from hivemem.surfaces.operations import OPERATIONS
from tests.docs.pages import PAGES, REPOSITORY, anchors, blocks, code, links, name, prose, shell_lines

README = REPOSITORY / "README.md"
QUICKSTART = REPOSITORY / "docs" / "quickstart.md"
MAKEFILE = REPOSITORY / "Makefile"
TARGETS = frozenset(re.findall(r"^([a-z]+):", MAKEFILE.read_text("utf-8"), re.MULTILINE))
SETTINGS = frozenset(field.name for field in fields(Settings))
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
OTHER_VARIABLES = frozenset(("HIVEMEM_SHARED_DIR", "HIVEMEM_TEST_DATABASE_URL"))

pages = pytest.mark.parametrize("page", PAGES, ids=name)


@pages
def test_relative_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{link} is not a file"
        if anchor:
            assert anchor in anchors(target), f"{link} is not a heading; there are {sorted(anchors(target))}"


@pages
def test_hivemem_commands_in_blocks_are_understood(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in shell_lines(page):
        words = shlex.split(line, comments=True)
        if words[0] != "hivemem":
            continue
        if words[1:] == ["--version"]:
            continue
        try:
            build_parser().parse_args(words[1:])
        except SystemExit:
            pytest.fail(f"{line}\n{capsys.readouterr().err}")


@pages
def test_commands_in_the_prose_exist(page: Path) -> None:
    for text in (*code(page), *shell_lines(page)):
        words = text.split()
        if words[0] == "make":
            named = {word for word in words[1:] if re.fullmatch(r"[a-z]+", word)}
            assert named <= TARGETS, f"{text!r}: the Makefile has {sorted(TARGETS)}"
        elif words[0] == "hivemem" and len(words) > 1 and not words[1].startswith("-"):
            assert words[1] in VERBS, f"{text!r}: the commands are {sorted(VERBS)}"
            if words[1] in ("config", "key"):
                assert (
                    words[2]
                    in {"config": ("show", "reference"), "key": ("create", "list", "show", "revoke")}[
                        words[1]
                    ]
                )


@pages
def test_environment_variables_are_settings(page: Path) -> None:
    for variable in re.findall(rf"\b{ENVIRONMENT_PREFIX}[A-Z_]+\b", page.read_text("utf-8")):
        setting = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        in_file = setting.removesuffix("_file") in secret_names()
        assert setting in SETTINGS or in_file or variable in OTHER_VARIABLES, variable


@pytest.mark.parametrize("page", [page for page in PAGES if "benchmarks" not in page.parts], ids=name)
def test_names_that_look_like_settings_are_settings(page: Path) -> None:
    prefixes = ("max_", "rerank_", "embedder_", "model_", "relevance_", "regex_", "projection_", "allowed_")
    # Values of the same name elsewhere: inputs of operations, and what the model's record calls itself.
    known = SETTINGS | {"max_results", "model_id"}
    for text in code(page):
        if re.fullmatch(r"[a-z]+(_[a-z]+)+", text) and text.startswith(prefixes):
            assert text in known, f"{text} on {name(page)}"


@pages
def test_tools_are_operations(page: Path) -> None:
    tools = {operation.name for operation in OPERATIONS}
    assert {text for text in code(page) if re.fullmatch(r"hm_[a-z_]+", text)} <= tools


@pages
def test_files_of_the_repository_that_a_page_names_exist(page: Path) -> None:
    for text in code(page):
        path = text.split("::")[0].rstrip("/")
        if re.fullmatch(r"(src|tests|docs|benchmarks|demo)/[\w./-]+", path):
            assert (REPOSITORY / path).exists(), text


@pages
def test_data_in_blocks_parses(page: Path) -> None:
    for block in blocks(page, "json"):
        json.loads(block.text)
    for block in blocks(page, "toml"):
        tomllib.loads(block.text)
    for block in blocks(page, "python"):
        compile(block.text, name(page), "exec")


def test_the_pages_show_the_entries_that_the_demonstration_prints() -> None:
    url = "http://127.0.0.1:8477"
    shown = {block.text.strip() for page in (README, QUICKSTART) for block in blocks(page)}
    assert {claude_entry(url), codex_entry(url), cursor_entry(url)} <= shown
    assert not KEY_VARIABLE.startswith(ENVIRONMENT_PREFIX)


def test_the_readme_names_every_tool_and_every_page_is_in_an_index() -> None:
    assert {operation.name for operation in OPERATIONS} <= set(code(README))
    for folder in (REPOSITORY / "docs", REPOSITORY / "docs" / "decisions"):
        listed = {(folder / link.partition("#")[0]).resolve() for link in links(folder / "README.md")}
        there = {page for page in folder.glob("*.md") if page.name != "README.md"}
        assert there <= listed, f"not in {folder.name}/README.md: {[page.name for page in there - listed]}"


def test_every_runtime_dependency_has_its_reason() -> None:
    page = REPOSITORY / "docs" / "decisions" / "dependencies.md"
    table = prose(page).partition("## Direct")[2].partition("## What they bring")[0]
    explained = re.findall(r"^\| `([\w.-]+)` \|", table, re.MULTILINE)
    declared = [re.split(r"[^\w.-]", line)[0].rstrip(".") for line in PROJECT["project"]["dependencies"]]
    assert [each.lower() for each in explained] == sorted(each.lower() for each in declared)


def test_make_lists_its_targets() -> None:
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE.read_text("utf-8"), re.MULTILINE)
    assert phony is not None and set(phony[1].split()) == TARGETS
