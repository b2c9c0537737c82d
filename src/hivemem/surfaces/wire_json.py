"""JSON as it crosses the wire: strict when read, compact UTF-8 when written."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, cast

from hivemem.errors import InvalidInput


def parse_json(text: bytes | str) -> object:
    """The value of a JSON text (RFC 8259, UTF-8).

    Raises:
        InvalidInput: Not UTF-8, not JSON, a name used twice in one object, NaN or Infinity, a number out of
            range, or nested too deeply to be read.
    """
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        return _DECODER.decode(decoded)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"/ is not UTF-8: byte {error.start} cannot be decoded.") from error
    except RecursionError as error:
        raise InvalidInput("/ is nested too deeply; flatten it.") from error
    except json.JSONDecodeError as error:
        raise InvalidInput(
            f"/ is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from error
    except ValueError as error:
        # An integer of more digits than Python converts.
        raise InvalidInput("/ holds a number with too many digits; send it as text.") from error


def dump_json(value: object) -> bytes:
    """Compact UTF-8 JSON; what UTF-8 cannot carry is written as an escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", errors="backslashreplace")


def json_size(value: object) -> int:
    """Bytes of `dump_json(value)`."""
    return len(dump_json(value))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) != len(pairs):
        counts = Counter(name for name, _ in pairs)
        [(twice, _)] = counts.most_common(1)
        raise InvalidInput(f"/ holds the name {twice[:100]!r} twice in one object; send it once.")
    return built


def _constant(name: str) -> object:
    raise InvalidInput(f"/ holds {name}, which is not JSON; send a finite number or null.")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise InvalidInput(f"/ holds the number {text[:40]}, which is out of range.")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=cast("Any", _object), parse_constant=_constant, parse_float=_float
)
