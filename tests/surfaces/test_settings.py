"""Settings: where values come from, and what is said about mistakes."""

from __future__ import annotations

import json
import os
import traceback
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hivemem.errors import InvalidInput
from hivemem.service.limits import Limits
from hivemem.settings import FILE_NAME, Settings, load_settings, secret_names, settings_reference
from hivemem.surfaces.cli.main import main

REFERENCE_PAGE = Path(__file__).parents[2] / "docs" / "operating" / "settings.md"


def load(tmp_path: Path, flags: dict[str, object] | None = None, file: str = "", **variables: str) -> Any:
    (tmp_path / FILE_NAME).write_text(file, "utf-8")
    environment = {"HIVEMEM_DATA_DIR": str(tmp_path), "PATH": "/bin", **variables}
    return load_settings(flags, environment)


def test_flag_wins_over_environment_over_file_over_default(tmp_path: Path) -> None:
    file = "port = 1\nmax_assets = 2\nlog_level = 'debug'\n"
    loaded = load(tmp_path, {"port": "3", "host": None}, file, HIVEMEM_PORT="4", HIVEMEM_MAX_ASSETS="5")
    settings, sources = loaded.settings, loaded.sources
    assert (settings.port, sources["port"]) == (3, "flag")
    assert (settings.max_assets, sources["max_assets"]) == (5, "environment")
    assert (settings.log_level, sources["log_level"]) == ("debug", "file")
    assert (settings.host, sources["host"]) == ("127.0.0.1", "default")
    assert (settings.data_dir, sources["data_dir"]) == (tmp_path, "environment")


def test_text_is_converted_and_lists_have_two_spellings(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        file='allowed_hosts = ["a.example", "b.example:8443"]',
        HIVEMEM_RERANK_BUDGET_SECONDS="0.5",
        HIVEMEM_MAX_BODY_BYTES="1_000_000",
    )
    assert loaded.settings.rerank_budget_seconds == 0.5
    assert loaded.settings.max_body_bytes == 1_000_000
    assert loaded.settings.allowed_hosts == ("a.example", "b.example:8443")
    again = load(tmp_path, HIVEMEM_ALLOWED_HOSTS="a.example, b.example ,")
    assert again.settings.allowed_hosts == ("a.example", "b.example")


@pytest.mark.parametrize(
    ("flags", "file", "variables", "said"),
    [
        ({"prot": "1"}, "", {}, "Did you mean 'port'"),
        ({}, "rerank_dept = 1", {}, "Did you mean 'rerank_depth'"),
        ({}, "", {"HIVEMEM_EMBEDER": "x"}, "Did you mean 'embedder'"),
        ({}, "", {"HIVEMEM_ZZZZZZZZ": "x"}, "hivemem config show"),
        ({"port": "many"}, "", {}, "'many'"),
        ({}, "port = 1.5", {}, "whole number"),
        ({}, "port = true", {}, "number"),
        ({}, "host = 1", {}, "text"),
        ({}, "port = 65536", {}, "65,535"),
        ({"relevance_floor": "nan"}, "", {}, "0.0 to 1.0"),
        ({"log_level": "loud"}, "", {}, "warning"),
        ({"embedder": "bundeld"}, "", {}, "'bundeld'"),
        ({"embedder": "hashing:abc"}, "", {}, "config reference"),
        ({"embedder": "openai:http://host"}, "", {}, "config reference"),
        ({"reranker": "off"}, "", {}, "config reference"),
        ({}, "port = ", {}, "not valid TOML"),
        ({}, "data_dir = '/elsewhere'", {}, "--data-dir"),
        ({}, "[server]\nport = 1", {}, "'server'"),
    ],
)
def test_mistakes_are_errors_that_help(
    tmp_path: Path, flags: dict[str, object], file: str, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        load(tmp_path, flags, file, **variables)
    assert said in raised.value.message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("embedder", "hashing:384"),
        ("embedder", "directory:~/model"),
        ("embedder", "huggingface:org/model"),
        ("embedder", "openai:http://host:1/v1#model"),
        ("reranker", "none"),
        ("reranker", "directory:/model"),
        ("reranker", "tei:http://host"),
        ("reranker", "cohere:http://host#model"),
        ("reranker", "jina:http://host#model"),
    ],
)
def test_every_form_of_a_model_is_taken(tmp_path: Path, name: str, value: str) -> None:
    assert getattr(load(tmp_path, {name: value}).settings, name) == value


def test_a_secret_may_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    secret = tmp_path / "database_url"
    secret.write_text(" postgresql://me:s3cret@db/memory\n", "utf-8")
    loaded = load(tmp_path, file="database_url = 'postgresql://other'", HIVEMEM_DATABASE_URL_FILE=str(secret))
    assert loaded.settings.database_url == "postgresql://me:s3cret@db/memory"
    assert loaded.sources["database_url"] == "secret file"
    assert ("database_url", "***", "secret file") in loaded.rows()
    flag = load(tmp_path, {"database_url": "postgresql://flag"}, HIVEMEM_DATABASE_URL_FILE=str(secret))
    assert flag.settings.database_url == "postgresql://flag"


@pytest.mark.parametrize("name", secret_names())
def test_every_secret_may(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("s3cret", "utf-8")
    loaded = load(tmp_path, None, "", **{f"HIVEMEM_{name.upper()}_FILE": str(tmp_path / "secret")})
    assert getattr(loaded.settings, name) == "s3cret"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b" \n", "is empty"),
        (b"s3cret\nmore", "more than one line"),
        (b"s3cret\xff", "not UTF-8"),
        (b"s3cret" * 4_000, "more than one line"),
    ],
    ids=["missing", "empty", "two lines", "bytes", "large"],
)
def test_a_file_that_holds_no_secret_is_told_without_its_content(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput) as raised:
        load(tmp_path, HIVEMEM_EMBEDDER_API_KEY_FILE=str(path))
    assert said in raised.value.message and str(path) in raised.value.message
    assert "s3cret" not in "".join(traceback.format_exception(raised.value))


def test_a_secret_from_two_places_and_files_of_other_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret", "utf-8")
    with pytest.raises(InvalidInput, match="both HIVEMEM_API_KEY and HIVEMEM_API_KEY_FILE"):
        load(tmp_path, HIVEMEM_API_KEY="x", HIVEMEM_API_KEY_FILE=str(tmp_path / "secret"))
    with pytest.raises(InvalidInput, match="no setting 'port_file'"):
        load(tmp_path, HIVEMEM_PORT_FILE=str(tmp_path / "secret"))


def test_limits_are_the_services_limits() -> None:
    named = {spec.name: getattr(Limits(), spec.name) for spec in fields(Limits)}
    settings = Settings()
    shared = {name: value for name, value in named.items() if hasattr(settings, name)}
    assert len(shared) >= 8
    assert {name: getattr(settings, name) for name in shared} == shared
    assert settings.limits == Limits()
    assert Settings(max_assets=3).limits.max_assets == 3


def test_every_setting_has_a_sentence_and_a_sane_default() -> None:
    for spec in fields(Settings):
        assert spec.metadata["summary"].endswith("."), spec.name
    assert "| `port` | `8477` | 0 to 65,535 |" in settings_reference()


def test_the_reference_page_is_up_to_date() -> None:
    assert REFERENCE_PAGE.read_text("utf-8") == settings_reference()


def test_config_show_masks_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("HIVEMEM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HIVEMEM_EMBEDDER_API_KEY", "sk-secret")
    assert main(["config", "show", "--json", "--data-dir", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "sk-secret" not in shown
    rows = json.loads(shown)
    assert rows["embedder_api_key"] == {"value": "***", "source": "environment"}
    assert rows["reranker_api_key"] == {"value": "", "source": "default"}
    assert rows["data_dir"] == {"value": str(tmp_path), "source": "flag"}
    assert main(["config", "show", "--data-dir", str(tmp_path)]) == 0
    assert "***" in capsys.readouterr().out
