"""The systemd unit and the configurations of proxies: what in them must agree with the server."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hivemem.settings import Settings, load_settings
from hivemem.surfaces.cli.main import build_parser

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
UNIT = (DEPLOY / "systemd" / "hivemem.service").read_text("utf-8")
MIB = 1024 * 1024


def option(name: str) -> list[str]:
    """All values of an option of the unit, in order."""
    return re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)


def test_the_unit_gives_the_server_one_folder_and_no_rights() -> None:
    expected = {
        "User": "hivemem",
        "StateDirectory": "hivemem",
        "StateDirectoryMode": "0700",
        "NoNewPrivileges": "yes",
        "CapabilityBoundingSet": "",
        "ProtectSystem": "strict",
        "ProtectHome": "yes",
        "PrivateTmp": "yes",
        "MemoryDenyWriteExecute": "yes",
        "Restart": "on-failure",
        # The first key is printed there.
        "StandardOutput": "null",
        "UMask": "0077",
    }
    assert {name: option(name) for name in expected} == {name: [value] for name, value in expected.items()}
    assert option("SystemCallFilter") == ["@system-service", "~@privileged"]
    assert not option("ReadWritePaths") and not option("AmbientCapabilities")[0]


def test_the_unit_runs_a_command_that_exists_with_settings_that_exist() -> None:
    (start,) = option("ExecStart")
    assert build_parser().parse_args(start.split()[1:]).verb == "serve"
    given = dict(pair.split("=", 1) for line in option("Environment") for pair in line.split())
    ours = {name: value.replace("%S", "/var/lib") for name, value in given.items() if "HIVEMEM" in name}
    assert load_settings({}, ours).settings.data_dir == Path("/var/lib/hivemem")
    assert int(option("TimeoutStopSec")[0]) > 10


def test_the_secret_reaches_the_setting(tmp_path: Path) -> None:
    text = (DEPLOY / "systemd" / "postgresql.conf").read_text("utf-8")
    credential = re.search(r"^LoadCredential=(\w+):/etc/hivemem/", text, re.MULTILINE)
    named = re.search(r"^Environment=(HIVEMEM_\w+)=%d/(\w+)$", text, re.MULTILINE)
    assert credential is not None and named is not None and credential[1] == named[2]
    (tmp_path / named[2]).write_text("postgresql://db.example/hivemem\n", "utf-8")
    loaded = load_settings({}, {named[1]: str(tmp_path / named[2])})
    assert loaded.settings.database_url == "postgresql://db.example/hivemem"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    program = shutil.which("true")
    assert program is not None
    unit = tmp_path / "hivemem.service"
    unit.write_text(UNIT.replace("/opt/hivemem/bin/hivemem", program), "utf-8")
    (tmp_path / "hivemem.service.d").mkdir()
    shutil.copy(DEPLOY / "systemd" / "postgresql.conf", tmp_path / "hivemem.service.d")
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, timeout=30, check=False
    )
    # Names that it does not know are warnings, with exit code 0.
    said = [line for line in verified.stderr.decode().splitlines() if "hivemem" in line]
    assert (verified.returncode, said) == (0, [])


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("nginx.conf", r"client_max_body_size (\d+)m;"),
        ("Caddyfile", r"max_size (\d+)MiB"),
    ],
)
def test_proxies_let_the_largest_upload_through_and_hold_no_stream_back(name: str, pattern: str) -> None:
    text = (DEPLOY / "proxy" / name).read_text("utf-8")
    size = re.search(pattern, text)
    assert size is not None
    assert 0 <= int(size[1]) * MIB - Settings().max_upload_bytes < 2 * MIB
    assert f"127.0.0.1:{Settings().port}" in text
    assert ("proxy_buffering off;" if name == "nginx.conf" else "flush_interval -1") in text
    assert "/metrics" in text and "Strict-Transport-Security" in text


def test_nginx_tells_who_asked_and_drops_what_a_client_claims() -> None:
    text = (DEPLOY / "proxy" / "nginx.conf").read_text("utf-8")
    headers = dict(re.findall(r"proxy_set_header ([\w-]+) (\S+);", text))
    assert headers["Host"] == "$host"
    assert headers["X-Forwarded-For"] == "$remote_addr"
    assert headers["X-Forwarded-Proto"] == "$scheme"
    assert "$proxy_add_x_forwarded_for" not in text
    assert text.count("{") == text.count("}")
