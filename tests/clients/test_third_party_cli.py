"""A command line that others wrote for memories of this kind works against a server of ours, unmodified.

The script in the shared folder installs that command line from the package index and runs its checks.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.postgres import fresh_database
from tests.surfaces.serving import Server, run_cli

CHECKS = 131

pytestmark = [pytest.mark.shared, pytest.mark.timeout(900)]


def run_checks(
    shared_dir: Path, environment_folder: Path, server: Server, folder: Path, **extra: str
) -> None:
    """Run the script on a server with a person in an organization; all checks must pass."""

    def hivemem(*arguments: str) -> dict[str, str]:
        done = run_cli(server.data_dir, *arguments, "--json", **extra)
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    hivemem("user", "add", "ada")
    organization = hivemem("org", "add", "Acme", "--owner", "ada")
    key = hivemem("key", "create", "--user", "ada")["key"]
    reader = hivemem("key", "create", "--user", "ada", "--scope", "member")["key"]
    skill = folder / "release-notes"
    skill.mkdir()
    (skill / "SKILL.md").write_text(
        "---\nname: release-notes\n---\nWrite what changed, for people.\n", "utf-8"
    )
    hivemem("skill", "publish", str(skill), "--for-user", "ada")

    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HM_", "HIVEMEM_"))}
    asked = {
        "HM_URL": server.url,
        "HM_KEY": key,
        "HM_MEMBER_KEY": reader,
        "HM_ORG_ID": organization["organization_id"],
        "HM_SKILL_NAME": "release-notes",
    }
    done = subprocess.run(
        ["bash", shared_dir / "conformance" / "hm_cli.sh", environment_folder],
        env=kept | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    failed = re.findall(r"^FAIL .*", done.stdout, re.MULTILINE)
    assert failed == [], done.stderr
    assert f"{CHECKS} passed, 0 failed" in done.stdout
    assert done.returncode == 0


def test_all_checks_pass_on_the_file(shared_dir: Path, environment_folder: Path, tmp_path: Path) -> None:
    with Server(tmp_path / "data") as server:
        run_checks(shared_dir, environment_folder, server, tmp_path)


@pytest.mark.soak
def test_all_checks_pass_on_postgres(shared_dir: Path, environment_folder: Path, tmp_path: Path) -> None:
    url = {"HIVEMEM_DATABASE_URL": fresh_database()}
    with Server(tmp_path / "data", **url) as server:
        run_checks(shared_dir, environment_folder, server, tmp_path, **url)
