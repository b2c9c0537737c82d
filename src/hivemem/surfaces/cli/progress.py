"""A progress bar on standard error, where somebody is looking."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress_bar(
    label: str, unit: str, *, forced: bool = False
) -> Generator[Callable[[int, int], None], None, None]:
    """A function (done, total) that moves the bar; it does nothing unless standard error is a terminal."""
    shown = forced or sys.stderr.isatty()
    with tqdm(desc=label, unit=unit, file=sys.stderr, disable=not shown, total=0) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report
