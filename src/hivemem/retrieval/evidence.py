"""The evidence of many nodes at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hivemem.retrieval.ranking import Calibration


def evidence_of_nodes(
    bm25: NDArray[np.float64],
    ideal: float,
    cosine: NDArray[np.float64] | None,
    calibration: Calibration,
) -> NDArray[np.float64]:
    """What `evidence_points` gives for each node, bit for bit.

    Args:
        bm25: Of each node, at least 0, shape (n,).
        ideal: The upper bound of BM25 for the query, at least 0.
        cosine: Of each node's best passage, NaN for a node without vectors; None without an embedder.
        calibration: Weights of the evidence.
    """
    points = calibration.bm25 * bm25 / ideal if ideal > 0 else np.zeros(len(bm25))
    if cosine is not None:
        # fmax takes the number where the other is NaN.
        points += calibration.cosine * np.fmax(0.0, cosine - calibration.cosine_zero)
    return points
