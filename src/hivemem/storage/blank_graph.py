"""What an empty graph still holds, and the errors of filling one; alike in each database."""

from __future__ import annotations

from typing import LiteralString

from hivemem.errors import Conflict, InvalidInput
from hivemem.storage.tables import GRAPH_TABLES, Table

COUNTERS = next(table for table in GRAPH_TABLES if table.name == "graph_counters")

BEFORE_ANYTHING: dict[str, LiteralString] = {
    "graph_counters": "graph_id IS NOT NULL",
    "nodes": "key = 'user_profile' AND enrichment_status = 'placeholder'",
    "versions": "kind = 'node' AND id = 'user_profile'",
}
"""Table -> condition on the rows that a graph has before anybody stores something; other tables have none."""


def not_empty(table: Table) -> Conflict:
    """The refusal of a graph in whose table there is something."""
    return Conflict(
        f"the memory is not empty: {table.name} has rows. Add --merge to store the archive's nodes and "
        "relationships into it, or name an empty one with --data-dir.",
        code="graph_not_empty",
    )


def contradiction(table: Table, error: Exception) -> InvalidInput:
    """The refusal of rows that the database does not take."""
    return InvalidInput(
        f"the archive's rows of {table.name} cannot be stored: {str(error).splitlines()[0]}. The archive was "
        "changed, or is not one of ours."
    )
