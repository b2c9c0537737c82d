"""The projection: a disposable in-memory index of each graph in use. The store is the truth."""

from hivemem.projection.graph_index import GraphIndex
from hivemem.projection.hits import Neighbour, PassageHit, TermHit, TermScore
from hivemem.projection.hot_graphs import HotGraphs

__all__ = ["GraphIndex", "HotGraphs", "Neighbour", "PassageHit", "TermHit", "TermScore"]
