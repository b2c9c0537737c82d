"""Log lines for machines and people: one line an event, on standard error, as `name=value` pairs or JSON.

Every line passes through `redacted`, so that a credential that got into a message, an argument or a
traceback does not get into the log.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import cast

from hivemem.settings import Settings, secret_names
from hivemem.surfaces.redaction import redacted, worth_hiding
from hivemem.surfaces.request_id import request_id

FIELDS = "hivemem_fields"
"""Attribute of a record with further values for its line: name -> string or number."""


class LineFormatter(logging.Formatter):
    """`time=... level=... logger=... request_id=... message="..."`, always on a single line.

    Args:
        known: Secrets that are taken out of every line, besides all that has the form of one.
    """

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._known = known

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; a traceback goes into the field `error`."""
        return self._line(self._values(record))

    def _line(self, values: dict[str, str | int | float]) -> str:
        plain = ("time", "level", "logger", "request_id")
        return " ".join(
            f"{name}={value if name in plain else json.dumps(value, ensure_ascii=False)}"
            for name, value in values.items()
        )

    def _values(self, record: logging.LogRecord) -> dict[str, str | int | float]:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        values: dict[str, str | int | float] = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if request_id.get():
            values["request_id"] = request_id.get()
        values["message"] = self._clean(_message(record))
        values.update(self._further(record))
        if record.exc_info:
            values["error"] = self._clean(self.formatException(record.exc_info))
        elif record.exc_text:
            values["error"] = self._clean(record.exc_text)
        if record.stack_info:
            values["stack"] = self._clean(record.stack_info)
        return values

    def _further(self, record: logging.LogRecord) -> dict[str, str | int | float]:
        """The message of such a record says the same; beside it only the id is missing."""
        fields = cast("dict[str, str | int | float]", getattr(record, FIELDS, {}))
        return {"request_id": fields["request_id"]} if fields.get("request_id") else {}

    def _clean(self, text: str) -> str:
        return redacted(text, self._known)


class JsonFormatter(LineFormatter):
    """One JSON object a line, with the same values; those of an access line each under its name."""

    def _line(self, values: dict[str, str | int | float]) -> str:
        return json.dumps(values, ensure_ascii=False)

    def _further(self, record: logging.LogRecord) -> dict[str, str | int | float]:
        fields = cast("dict[str, str | int | float]", getattr(record, FIELDS, {}))
        return {
            name: self._clean(value) if isinstance(value, str) else value for name, value in fields.items()
        }


def configure_logging(settings: Settings, *, level: str | None = None) -> None:
    """Send all log records from `level` on, or from the one of the settings, to standard error."""
    known = worth_hiding([getattr(settings, name) for name in secret_names()])
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(known) if settings.log_format == "json" else LineFormatter(known))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel((level or settings.log_level).upper())
    # The SDK tells of every request's life cycle; that is of interest to its developers only.
    logging.getLogger("mcp").setLevel(max(logging.WARNING, root.level))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:
        # A wrong format would make `logging` print the arguments, past every filter.
        return f"{record.msg} (its arguments do not fit: {type(error).__name__})"
