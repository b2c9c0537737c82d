"""Skills: the built-in texts, publishing a folder, and what agents and clients get."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hivemem.domain.skills import CustomSkill, SkillFile, following_version, is_newer
from hivemem.errors import InvalidInput
from tests.support.builders import START
from tests.surfaces.serving import REST, Served, run_cli, served

VARIANTS = ["general", "project", "cursor", "cli", "memorize-full-chat"]


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path) as opened:
        yield opened


async def skills(api: Served, **arguments: Any) -> dict[str, Any]:
    response = await api.post("skills", arguments)
    assert response.status_code == 200, response.text
    return response.json()


async def test_the_list_has_every_variant_without_texts(api: Served) -> None:
    answer = await skills(api)
    assert answer["catalog_version"] == "0.1.0"
    assert [entry["variant"] for entry in answer["skills"]] == VARIANTS
    for entry in answer["skills"]:
        assert "content" not in entry and "skill_id" not in entry
        assert is_newer("0.13.4", entry["version"])
    full = await skills(api, action="list", include_content=True)
    assert all(len(entry["content"]) > 500 for entry in full["skills"])
    assert [entry["variant"] for entry in (await skills(api, variant="cli"))["skills"]] == ["cli"]


async def test_get_gives_the_text_and_its_hash(api: Served) -> None:
    general = (await skills(api, action="get"))["skill"]
    assert general["variant"] == "general"
    assert general["sha256"] == hashlib.sha256(general["content"].encode()).hexdigest()
    for alias in ("openai", "chatgpt", "gpt", "codex", "claude-code"):
        assert (await skills(api, action="get", variant=alias))["skill"] == general
    texts = {(await skills(api, action="get", variant=variant))["skill"]["content"] for variant in VARIANTS}
    assert len(texts) == len(VARIANTS)
    assert (await skills(api, action="get", name=general["name"]))["skill"] == general
    short = (await skills(api, action="get", include_content=False))["skill"]
    assert "content" not in short


async def test_every_text_names_itself_in_its_header(api: Served) -> None:
    for entry in (await skills(api, include_content=True))["skills"]:
        header = entry["content"].split("---")[1]
        assert "description: " in header
        if entry["variant"] != "cursor":
            assert f"name: {entry['name']}\n" in header


async def test_get_by_query_is_the_same(api: Served) -> None:
    asked = {"action": "get", "variant": "cli", "include_content": "true"}
    response = await api.client.get(f"{REST}/skills", params=asked)
    assert response.json() == await skills(api, action="get", variant="cli", include_content=True)
    assert (await api.anonymous.get(f"{REST}/skills")).status_code == 401


async def test_updates_are_told_by_number(api: Served) -> None:
    old = await skills(api, action="check_update", current_version="0.0.9")
    assert (old["update_available"], old["latest_version"]) == (True, "0.1.0")
    assert "skill" not in old
    same = await skills(api, action="check_update", current_version="0.1.0", include_content=True)
    assert same["update_available"] is False
    assert same["skill"]["content"]
    assert (await api.post("skills", {"action": "check_update"})).status_code == 422


@pytest.mark.parametrize(
    "asked",
    [{"variant": "nope"}, {"name": "nope"}, {"skill_id": "nope"}, {"variant": "cli", "name": "hivemem"}],
)
@pytest.mark.parametrize("action", ["get", "list", "check_update"])
async def test_what_is_not_there_is_404(api: Served, action: str, asked: dict[str, str]) -> None:
    response = await api.post("skills", {"action": action, "current_version": "1", **asked})
    assert (response.status_code, response.json()["error"]) == (404, "not_found")
    assert (await api.post("skills", {"action": "other"})).status_code == 422


def folder(path: Path, text: str = "---\nname: tidy-up\n---\nTidy up. ☕\r\n") -> Path:
    (path / "notes").mkdir(parents=True, exist_ok=True)
    (path / "SKILL.md").write_bytes(text.encode())
    (path / "notes" / "how.md").write_bytes("é\r\n".encode())
    (path / "tool.py").write_text("print()\n")
    (path / ".git").mkdir(exist_ok=True)
    (path / ".git" / "config").write_text("secret")
    (path / "outside").symlink_to("/etc/hostname") if not (path / "outside").is_symlink() else None
    return path


def cli(tmp_path: Path, *arguments: str) -> tuple[int, Any]:
    done = run_cli(tmp_path / "data", *arguments, "--json")
    return done.returncode, json.loads(done.stdout or done.stderr)


async def test_a_folder_is_published_installed_changed_and_removed(tmp_path: Path) -> None:
    source = folder(tmp_path / "skill")
    code, first = cli(tmp_path, "skill", "publish", str(source))
    assert (code, first["status"], first["name"]) == (0, "published", "tidy-up")
    assert (first["version"], first["files"]) == ("0.1.0", 2)
    assert cli(tmp_path, "skill", "publish", str(source))[1] == {**first, "status": "unchanged"}
    async with served(tmp_path / "data") as api:
        for named in ({"name": "tidy-up"}, {"skill_id": first["skill_id"]}):
            skill = (await skills(api, action="get", **named))["skill"]
            assert "variant" not in skill
            assert skill["content"] == "---\nname: tidy-up\n---\nTidy up. ☕\r\n"
        assert [file["path"] for file in skill["files"]] == ["notes/how.md", "tool.py"]
        how = skill["files"][0]
        assert how["content"] == "é\r\n"
        assert (how["sha256"], how["size_bytes"]) == (hashlib.sha256("é\r\n".encode()).hexdigest(), 4)
        assert how["content_type"] == "text/markdown"
        listed = (await skills(api))["skills"][-1]
        assert (listed["skill_id"], len(listed["files"])) == (first["skill_id"], 2)
        assert all("content" not in file for file in listed["files"])
    folder(source, "---\nname: tidy-up\n---\nTidy up well.")
    changed = cli(tmp_path, "skill", "publish", str(source))[1]
    assert (changed["version"], changed["skill_id"]) == ("0.1.1", first["skill_id"])
    assert cli(tmp_path, "skill", "publish", str(source), "--name", "other")[1]["version"] == "0.1.0"
    assert [skill["name"] for skill in cli(tmp_path, "skill", "list")[1]["skills"]] == ["other", "tidy-up"]
    assert cli(tmp_path, "skill", "remove", "other") == (0, {"name": "other", "removed": True})
    assert cli(tmp_path, "skill", "remove", "other")[0] == 5


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [("hivemem", "x", 6), ("../up", "x", 6), ("ok", "", 6), ("ok", "\ufeffx", 0), ("a" * 65, "x", 6)],
)
def test_names_and_texts_are_checked(tmp_path: Path, name: str, content: str, code: int) -> None:
    folder(tmp_path / "skill", content)
    assert cli(tmp_path, "skill", "publish", str(tmp_path / "skill"), "--name", name)[0] == code


def test_a_folder_without_text_or_with_bytes_is_refused(tmp_path: Path) -> None:
    assert cli(tmp_path, "skill", "publish", str(tmp_path / "nowhere"))[0] == 5
    source = folder(tmp_path / "skill")
    (source / "image.png").write_bytes(b"\x89PNG\xff")
    assert cli(tmp_path, "skill", "publish", str(source))[0] == 6


@pytest.mark.parametrize(
    "paths",
    [
        ["/etc/passwd"],
        ["a\\b"],
        ["a//b"],
        ["../a"],
        ["a/../b"],
        [".hidden"],
        ["-a"],
        [""],
        ["SKILL.md"],
        ["deep/skill.MD"],
        ["a", "A"],
        ["a", "a/b"],
        ["A", "a/b/c"],
        ["é"],
        ["a b"],
    ],
    ids=str,
)
def test_files_that_no_client_lays_out_are_refused(paths: list[str]) -> None:
    with pytest.raises(InvalidInput, match="/files"):
        CustomSkill(
            skill_id="skill_1",
            name="a",
            version="1",
            content="x",
            files=tuple(SkillFile(path=path, content="", content_type="text/plain") for path in paths),
            published_at=START,
        )


def test_versions_compare_as_numbers() -> None:
    assert is_newer("0.10.0", "0.9.9") and not is_newer("0.9.9", "0.10.0")
    assert not is_newer("1.0", "1") and is_newer("2", "1.9.9.9")
    assert is_newer("1.0-rc", "1.0") and not is_newer("rc", "rc")
    assert (following_version("0.1.9"), following_version("7"), following_version("rc")) == (
        "0.1.10",
        "8",
        "rc.1",
    )
