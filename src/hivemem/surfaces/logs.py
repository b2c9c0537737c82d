"""Log lines for machines and people: one line an event, on standard error, as `name=value` pairs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from hivemem.surfaces.request_id import request_id


class LineFormatter(logging.Formatter):
    """`time=... level=... logger=... request_id=... message="..."`, always on a single line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; a traceback goes into the quoted field `error`."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        parts = [
            f"time={time.replace('+00:00', 'Z')}",
            f"level={record.levelname.lower()}",
            f"logger={record.name}",
        ]
        if request_id.get():
            parts.append(f"request_id={request_id.get()}")
        parts.append(f"message={json.dumps(record.getMessage(), ensure_ascii=False)}")
        if record.exc_info:
            parts.append(f"error={json.dumps(self.formatException(record.exc_info), ensure_ascii=False)}")
        return " ".join(parts)


def configure_logging(level: str) -> None:
    """Send all log records from `level` on to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # The SDK tells of every request's life cycle; that is of interest to its developers only.
    logging.getLogger("mcp").setLevel(max(logging.WARNING, root.level))
