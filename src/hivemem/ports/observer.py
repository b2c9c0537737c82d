"""Who is told about work while it is done: metrics, traces, or nobody.

The parts that work know this port alone. What is told never holds contents, keys, names or ids.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, TypeAlias

Facts: TypeAlias = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A recall was answered.

    Attributes:
        results: Hits in the answer.
        degraded: Parts that did not run or not wholly, such as `dense`.
    """

    results: int
    degraded: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """A call of an MCP tool ended.

    Attributes:
        tool: One of our tools, or `unknown`.
        error: The code of the error that it was answered with; None when it succeeded.
        retryable: Whether the caller was told to try again.
    """

    tool: str
    error: str | None = None
    retryable: bool = False


Event: TypeAlias = Recalled | ToolCalled


class Observer(Protocol):
    """What listens. Both methods are called by the task that works: they must be quick, and never raise."""

    def work(self, name: str, facts: Facts) -> AbstractContextManager[None]:
        """Entered when a piece of work begins, left when it ends; work begun inside is part of it.

        Args:
            name: One of a fixed set, such as `recall.first_stage`.
            facts: Sizes that tell why it takes long.
        """
        ...

    def note(self, event: Event) -> None:
        """Something happened that has no length."""
        ...


class Observers:
    """Hands on to all who listen; where nobody does, it costs a fraction of a microsecond."""

    def __init__(self) -> None:
        self._listening: tuple[Observer, ...] = ()

    def add(self, observer: Observer) -> None:
        """Tell `observer` too, from now on."""
        self._listening = (*self._listening, observer)

    def remove(self, observer: Observer) -> None:
        """Tell `observer` nothing more. What has begun still ends."""
        self._listening = tuple(other for other in self._listening if other is not observer)

    def work(self, name: str, **facts: int) -> AbstractContextManager[None]:
        """See `Observer.work`."""
        match self._listening:
            case ():
                return _UNSEEN
            case (alone,):
                return alone.work(name, facts)
            case several:
                return _SeenBySeveral([observer.work(name, facts) for observer in several])

    def note(self, event: Event) -> None:
        """See `Observer.note`."""
        for observer in self._listening:
            observer.note(event)


class _SeenBySeveral:
    def __init__(self, begun: list[AbstractContextManager[None]]) -> None:
        self._begun = begun

    def __enter__(self) -> None:
        for one in self._begun:
            one.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in reversed(self._begun):
            one.__exit__(kind, error, trace)


_UNSEEN = contextlib.nullcontext()
