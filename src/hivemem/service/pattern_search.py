"""Search by regular expression, in time linear in the text whatever the pattern."""

from __future__ import annotations

import asyncio
import json
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import re2

from hivemem.domain.graph import GraphId
from hivemem.domain.node import Node
from hivemem.errors import InvalidInput
from hivemem.ports.store import GraphStore

MAX_PATTERN_CHARACTERS = 1_000
_MAX_PATTERN_BYTES = 8 << 20
_PAGE = 500

_PLACES = (("key", 1.0), ("description", 0.9), ("data", 0.8))


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternMatch:
    """A node that the pattern matches: `where` is key, description or data, the first that does."""

    node: Node
    where: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternMatches:
    """The best matches, how many there are in all, and whether time ended the search."""

    matches: tuple[PatternMatch, ...]
    total: int
    searched: int
    cut: bool


class PatternSearch:
    """Matches every node of a graph against a pattern.

    Args:
        store: Where the nodes are.
        max_seconds: Time limit of one search, checked between nodes.
    """

    def __init__(self, *, store: GraphStore, max_seconds: float) -> None:
        self._store = store
        self.max_seconds = max_seconds

    async def search(self, graph_id: GraphId, pattern: str, *, max_results: int) -> PatternMatches:
        """Matches in keys first, then descriptions, then data (as JSON); newest first within each.

        Case does not matter, unless the pattern says `(?-i)`; pattern and texts are compared in NFC.

        Raises:
            InvalidInput: The pattern is too long or not valid RE2 syntax; the message says why.
        """
        compiled = compile_pattern(pattern)
        deadline = time.monotonic() + self.max_seconds
        matches: list[PatternMatch] = []
        searched, after, cut = 0, None, False
        while not cut:
            nodes = await self._store.scan(graph_id, after=after, limit=_PAGE)
            if not nodes:
                break
            after = nodes[-1].key
            found, done = await asyncio.to_thread(_match, compiled, nodes, deadline)
            matches += found
            searched += done
            cut = done < len(nodes)
        matches.sort(key=lambda match: (-match.score, -match.node.updated_at.timestamp(), match.node.key))
        return PatternMatches(
            matches=tuple(matches[:max_results]), total=len(matches), searched=searched, cut=cut
        )


def compile_pattern(pattern: str) -> Any:
    """A case-insensitive RE2 pattern.

    Raises:
        InvalidInput: As in `PatternSearch.search`.
    """
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise InvalidInput(
            f"/query has {len(pattern)} characters; a regular expression has at most "
            f"{MAX_PATTERN_CHARACTERS}."
        )
    options: Any = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = _MAX_PATTERN_BYTES
    try:
        return re2.compile(unicodedata.normalize("NFC", pattern), options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        if isinstance(reason, bytes):
            reason = reason.decode("utf-8", "replace")
        raise InvalidInput(
            f"/query is not a valid regular expression: {reason}. Backreferences and look-around are not "
            "supported; leave force_regex out to search by words."
        ) from error


def _match(compiled: Any, nodes: Sequence[Node], deadline: float) -> tuple[list[PatternMatch], int]:
    found: list[PatternMatch] = []
    for position, node in enumerate(nodes):
        if time.monotonic() > deadline:
            return found, position
        if node.placeholder:
            continue
        texts = (node.key, node.description, json.dumps(node.data, ensure_ascii=False) if node.data else "")
        for (where, score), text in zip(_PLACES, texts, strict=True):
            # Texts are kept as they were sent; like the pattern, they are compared in NFC.
            if text and compiled.search(unicodedata.normalize("NFC", text)):
                found.append(PatternMatch(node=node, where=where, score=score))
                break
    return found, len(nodes)
