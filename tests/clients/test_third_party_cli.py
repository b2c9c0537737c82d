"""A command line that others wrote for memories of this kind works against a server of ours, unmodified.

The script in the shared folder installs that command line from the package index and runs its checks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.postgres import fresh_database
from tests.surfaces.serving import Server

CHECKS = 124
PACKAGE = "hypermemory-cli==2.3.3"

pytestmark = [pytest.mark.shared, pytest.mark.timeout(900)]


@pytest.fixture(scope="session")
def environment_folder() -> Path:
    """A virtual environment with the package, kept from one run of the tests to the next."""
    folder = Path(tempfile.gettempdir()) / f"hivemem-third-party-cli-{os.getuid()}"
    if not (folder / "bin" / "hm").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        installed = subprocess.run([*pip, PACKAGE], capture_output=True, text=True, check=False)
        if installed.returncode:
            pytest.skip(f"{PACKAGE} cannot be installed: {installed.stderr.strip()[-300:]}")
    return folder


def run_checks(shared_dir: Path, environment_folder: Path, server: Server) -> None:
    """Run the script on a server that is empty; all checks must pass."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HM_", "HIVEMEM_"))}
    done = subprocess.run(
        ["bash", shared_dir / "conformance" / "hm_cli.sh", environment_folder],
        env=kept | {"HM_URL": server.url, "HM_KEY": server.key},
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
        run_checks(shared_dir, environment_folder, server)


@pytest.mark.soak
def test_all_checks_pass_on_postgres(shared_dir: Path, environment_folder: Path, tmp_path: Path) -> None:
    with Server(tmp_path / "data", HIVEMEM_DATABASE_URL=fresh_database()) as server:
        run_checks(shared_dir, environment_folder, server)
