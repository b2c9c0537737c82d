"""The evidence of many nodes is that of each one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.retrieval.evidence import evidence_of_nodes
from hivemem.retrieval.ranking import Calibration, Evidence, evidence_points

scores = st.floats(0, 60, allow_subnormal=False)
cosines = st.none() | st.floats(-1, 1, allow_subnormal=False)


@given(nodes=st.lists(st.tuples(scores, cosines), max_size=20), ideal=st.sampled_from([0.0, 7.3, 61.0]))
@settings(max_examples=50)
def test_each_node_has_the_points_of_the_formula(
    nodes: list[tuple[float, float | None]], ideal: float
) -> None:
    calibration = Calibration()
    bm25 = np.array([score if ideal else 0.0 for score, _ in nodes])
    cosine = np.array([np.nan if value is None else value for _, value in nodes])
    expected = [
        evidence_points(Evidence(cosine=value, bm25=score, ideal=ideal), calibration)
        for score, (_, value) in zip(bm25.tolist(), nodes, strict=True)
    ]
    assert evidence_of_nodes(bm25, ideal, cosine, calibration).tolist() == expected
    without = [
        evidence_points(Evidence(cosine=None, bm25=score, ideal=ideal), calibration)
        for score in bm25.tolist()
    ]
    assert evidence_of_nodes(bm25, ideal, None, calibration).tolist() == without
