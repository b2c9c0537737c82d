"""A server in what a hardened container is made of: a read-only root, no rights, and no network but itself.

The kernel's namespaces are used directly: no container engine is needed, but the right to make them is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.surfaces.serving import FAST, environment

_ENTER = ("unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc")
_DROP = ("setpriv", "--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all")
_LOCK_IN = """
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
mount -o remount,bind,ro /
shift
exec "$@"
"""

_PROGRAM = """
import base64, json, os, socket, subprocess, sys, time, urllib.request
from pathlib import Path

told = {"writable": [], "reachable": False}
for folder in ("/", "/tmp", "/var/tmp", str(Path.home()), os.environ["HIVEMEM_DATA_DIR"]):
    try:
        Path(folder, "probe").write_text("x")
    except OSError:
        continue
    told["writable"].append(folder)
status = Path("/proc/self/status").read_text()
told["rights"] = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff"))
try:
    socket.create_connection(("192.0.2.1", 443), timeout=2)
    told["reachable"] = True
except OSError:
    pass

hivemem = [sys.executable, "-m", "hivemem.surfaces.cli.main"]
key = subprocess.run([*hivemem, "key", "create"], capture_output=True, text=True, check=True).stdout.strip()
server = subprocess.Popen([*hivemem, "serve", "--port", "8477"], stdout=subprocess.PIPE, text=True)
until = time.monotonic() + 60
while subprocess.run([*hivemem, "health", "--ready"], capture_output=True).returncode:
    assert time.monotonic() < until and server.poll() is None, "the server does not become ready"
    time.sleep(0.1)


def call(path, body):
    request = urllib.request.Request(
        "http://127.0.0.1:8477/api/v1/memory/" + path,
        json.dumps(body).encode(),
        {"Authorization": "Bearer " + key, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


call("store", {"key": "fact_tea", "description": "Anna prefers green tea."})
told["found"] = [hit["key"] for hit in call("recall", {"query": "what does Anna drink?"})["results"]]
# More than is kept in memory on its way.
text = base64.b64encode(b"A line about coffee.\\n" * 400_000).decode()
told["uploaded"] = call("upload-file", {"filename": "coffee.txt", "content_base64": text})["size_bytes"]
server.terminate()
told["printed"] = server.communicate(timeout=30)[0].count("key")
told["code"] = server.returncode
print(json.dumps(told))
"""


def may_make_namespaces() -> bool:
    """Whether this process may do what the tests below need."""
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        return False
    tried = subprocess.run([*_ENTER, "mount", "--make-rprivate", "/"], capture_output=True, check=False)
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(not may_make_namespaces(), reason="no right to make namespaces")


def locked_in(folder: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command that may write below `folder` alone."""
    loopback = (
        "import fcntl, socket, struct; "
        "fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sH14x', b'lo', 65))"  # SIOCSIFFLAGS: up, running
    )
    script = f'{sys.executable} -c "$0"\n{_LOCK_IN}'
    return subprocess.run(
        [*_ENTER, "sh", "-c", script, loopback, str(folder), *_DROP, *command],
        env=environment(HIVEMEM_DATA_DIR=str(folder), PYTHONDONTWRITEBYTECODE="1", **variables),
        cwd="/",
        capture_output=True,
        timeout=110,
        check=False,
    )


@pytest.mark.models
def test_it_serves_with_one_folder_to_write_to_and_nobody_to_ask(tmp_path: Path) -> None:
    bundled = {f"HIVEMEM_{name.upper()}": "bundled" for name in FAST}
    done = locked_in(tmp_path, sys.executable, "-c", _PROGRAM, TMPDIR=str(tmp_path), **bundled)
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == {
        "writable": [str(tmp_path)],
        "reachable": False,
        "rights": "0000000000000000",
        "found": ["fact_tea"],
        "uploaded": 400_000 * 21,
        # The key was made before, so that no server prints one.
        "printed": 0,
        "code": 0,
    }


def test_without_a_folder_for_temporary_files_it_stores_and_gives_back_room(tmp_path: Path) -> None:
    variables = {name: "" for name in ("TMPDIR", "SQLITE_TMPDIR") if name in os.environ}
    command = (sys.executable, "-m", "hivemem.surfaces.cli.main")
    for arguments in (("store", "fact_a", "One."), ("purge", "--reclaim")):
        done = locked_in(tmp_path, *command, *arguments, **variables)
        assert done.returncode == 0, done.stderr.decode()
