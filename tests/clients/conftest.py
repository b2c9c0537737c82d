"""What tests with clients of others need."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

PACKAGE = "hypermemory-cli==2.3.3"


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
