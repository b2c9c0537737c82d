"""Secrets stay out of command lines, messages and answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hivemem.errors import InvalidInput
from hivemem.settings import load_settings
from hivemem.surfaces.redaction import without_credentials
from tests.edges.calls import tool
from tests.surfaces.serving import REST, Served, run_cli

PASSWORD = "Tr0ub4dor-and-3"
KEY = "hm_" + "5e" * 32


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--database-url", f"postgresql://u:{PASSWORD}@127.0.0.1:1/d"], "HIVEMEM_DATABASE_URL_FILE"),
        (["--database-url", f"postgresql://127.0.0.1:1/d?password={PASSWORD}"], "HIVEMEM_DATABASE_URL_FILE"),
        (["--set", f"embedder_api_key={PASSWORD}"], "HIVEMEM_EMBEDDER_API_KEY_FILE"),
        (["--set", f"database-url=postgresql://u:{PASSWORD}@127.0.0.1:1/d"], "HIVEMEM_DATABASE_URL_FILE"),
    ],
)
def test_a_secret_on_the_command_line_is_warned_of(tmp_path: Path, arguments: list[str], told: str) -> None:
    done = run_cli(tmp_path, "config", "show", *arguments)
    said = done.stderr.decode()
    assert "warning" in said
    assert told in said
    assert PASSWORD not in said + done.stdout.decode()


def test_what_holds_no_secret_is_not(tmp_path: Path) -> None:
    for arguments in (["--database-url", "postgresql://u@127.0.0.1:1/d"], ["--set", "rerank_depth=3"]):
        assert run_cli(tmp_path, "config", "show", *arguments).stderr == b""
    # Programs read standard error as one JSON object.
    done = run_cli(tmp_path, "config", "show", "--json", "--set", f"embedder_api_key={PASSWORD}")
    assert (done.returncode, done.stderr) == (0, b"")


def test_databases_of_a_copy_are_looked_at_too(tmp_path: Path) -> None:
    done = run_cli(
        tmp_path,
        "db",
        "copy",
        "--from",
        str(tmp_path / "absent"),
        "--to",
        f"postgresql://u:{PASSWORD}@127.0.0.1:1/d",
    )
    assert "PGPASSWORD" in done.stderr.decode()
    assert PASSWORD not in done.stderr.decode()


def test_setup_takes_a_key_from_standard_input(tmp_path: Path) -> None:
    arguments = ("setup", "cursor", "--url", "http://127.0.0.1:1", "--dry-run")
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    done = run_cli(tmp_path, *arguments, "--key", "-", stdin=KEY + "\n", **home)
    assert done.returncode == 0, done.stderr
    assert b"warning" not in done.stderr
    assert KEY.encode() not in done.stdout + done.stderr
    visible = run_cli(tmp_path, *arguments, "--key", KEY, **home)
    assert b"--key -" in visible.stderr
    assert KEY.encode() not in visible.stdout + visible.stderr


def test_settings_that_cannot_be_read_are_not_repeated(tmp_path: Path) -> None:
    done = run_cli(tmp_path, "config", "show", "--set", f"api_key:{PASSWORD}")
    assert done.returncode == 2
    assert PASSWORD not in done.stderr.decode()
    (tmp_path / "hivemem.toml").write_text("embedder_api_key = 31415926\n")
    with pytest.raises(InvalidInput) as refused:
        load_settings({"data_dir": str(tmp_path)}, {})
    assert "31415926" not in refused.value.message


def test_what_is_no_credential_beyond_doubt_stays_readable() -> None:
    for text in (
        "there is no node 'report_of_the_harbour_office_about_the_year_2024_in_full'.",
        "send the header 'Authorization: Bearer hm_...'.",
        "part_" + "a" * 43,
        "hm_" + "5e" * 20,
    ):
        assert without_credentials(text) == text
    for text in (KEY, f"/x/{KEY}", f"'{KEY.upper().replace('HM', 'hm')}'", "at_" + "aB-_" * 10 + "abc"):
        assert without_credentials(text) != text


async def test_errors_do_not_repeat_a_credential(api: Served, caplog: pytest.LogCaptureFixture) -> None:
    for response in (
        await api.client.get(f"{REST}/{api.key}"),
        await api.client.post(f"{REST}/recall", json={"query": "x", "organization_id": api.key}),
        await api.client.post(f"{REST}/recall", json={"query": "x", "max_results": api.key}),
        await api.client.get(f"{REST}/relationships/{api.key}"),
        await api.client.get(f"{REST}/exports/{api.key}"),
        await api.client.get("/health", headers={"Host": api.key}),
        await api.client.get("/health", headers={"Origin": f"https://{api.key}"}),
        await api.client.post(f"{REST}/store", content=api.key, headers={"Content-Type": api.key}),
        await api.anonymous.get(f"{REST}/overview", headers={"Authorization": f"Basic {api.key}"}),
        await api.anonymous.get(f"{REST}/overview", headers={"Authorization": f"Bearer {api.key}0"}),
        await api.anonymous.post("/token", json={"client_id": api.key, "grant_type": api.key}),
        await api.anonymous.post("/register", json={"redirect_uris": [f"javascript:{api.key}"]}),
        await api.anonymous.get("/authorize", params={"client_id": api.key}),
        await tool(api, "hm_forget", {"key": api.key}),
        await tool(api, "hm_list_orphans", {"cursor": api.key}),
    ):
        assert response.status_code >= 400 or response.json()["result"]["isError"], response.text
        assert api.key not in response.text
    assert api.key not in caplog.text


def test_secrets_are_compared_in_constant_time_or_looked_up_by_hash() -> None:
    """`==` ends at the first different byte, which tells how many were right."""
    package = Path(__file__).resolve().parents[2] / "src" / "hivemem"
    compared = re.compile(
        r"\b\w*(?:secret|password|credential|signature|verifier|challenge|consent_hash|token_hash)\b"
        r"(?:\(\))?\s*[!=]=\s*(?!None|[\"'])|[!=]=\s*\w*(?:secret|password|signature|verifier|token_hash)\b"
    )
    found = [
        f"{path.relative_to(package)}: {line.strip()}"
        for path in package.rglob("*.py")
        for line in path.read_text().splitlines()
        if compared.search(line) and not line.lstrip().startswith("#")
    ]
    assert found == []
