"""JSON of the size that is allowed costs in proportion to its size, whatever its shape."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from hivemem.settings import MIB

_CPU_SECONDS = 60
"""Of a process that needs about two; one whose cost grows with the square would need an hour or more."""

SHAPES = {
    "a name twice after many": (
        "n = 600_000\n"
        "body = '{' + ','.join(f'\"{i:x}\":0' for i in range(n)) + ',\"twice\":0,\"twice\":0}'\n"
        "said = 'twice'\n"
    ),
    "many values below a long name": (
        "n = 1_500_000\n"
        "body = '{\"' + 'x' * 4_000_000 + '\":[' + '0,' * n + '\"\\\\u0000\"]}'\n"
        "said = 'U+0000'\n"
    ),
    "many values below a long name of data": (
        "n = 1_500_000\nbody = '{\"data\":{\"' + 'x' * 4_000_000 + '\":[' + '0,' * n + '0]}}'\nsaid = None\n"
    ),
    "the same parameter after many": (
        "n = 500_000\nbody = '&'.join(f'{i:x}=1' for i in range(n)) + '&twice=1&twice=1'\nsaid = 'twice'\n"
    ),
}
_READ = """
from urllib.parse import parse_qsl
from hivemem.domain.text import storable_json
from hivemem.errors import HivememError
from hivemem.surfaces.inputs import Input, parse_input
from hivemem.surfaces.oauth.wire import _parameters
from hivemem.surfaces.wire_json import parse_json

assert len(body) <= limit, len(body)
try:
    if body.startswith("{"):
        read = parse_json(body)
        parse_input(Input, read)
        storable_json(read, "/data")
    else:
        _parameters(parse_qsl(body)).check_repetitions()
except HivememError as error:
    assert said is not None and said in error.message and len(error.message) < 1000, error.message[:300]
else:
    assert said is None
"""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_hostile_shape_costs_no_more_than_its_size(shape: str) -> None:
    program = f"limit = {8 * MIB}\n{SHAPES[shape]}{_READ}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS)),
    )
    assert done.returncode == 0, done.stderr[-2000:]
