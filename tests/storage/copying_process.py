"""A copy that its parent can kill: `python -m tests.storage.copying_process FROM TO STOP_AFTER`.

It prints the rows done after every page of three, and waits for ever after STOP_AFTER pages.
"""

from __future__ import annotations

import contextlib
import sys

from hivemem.service.copying import copy_database
from hivemem.service.database_urls import database_url, open_source, open_target


def main(source: str, target: str, stop_after: int) -> None:
    pages = 0

    def report(doing: str, done: int, total: int) -> None:
        nonlocal pages
        pages += 1
        print(doing, done, total, flush=True)
        if pages == stop_after:
            sys.stdin.read()

    with (
        contextlib.closing(open_source(database_url(source))) as reading,
        contextlib.closing(open_target(database_url(target))) as writing,
    ):
        copy_database(reading, writing, report=report, max_page_rows=3)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
