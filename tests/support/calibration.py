"""Ranking numbers of the tests' own: what they check is everything around the tuned formula."""

from __future__ import annotations

from hivemem.retrieval.ranking import Calibration

CALIBRATION = Calibration(
    bm25=4.0,
    cosine=6.0,
    cosine_zero=0.4,
    support=0.3,
    context=0.5,
    read_slope=3.0,
    read_offset=-10.0,
    scale=0.6,
    offset=0.0,
    asks=1.0,
    answers=1.0,
    respelled=3.0,
    floor=0.3,
    floor_growth=0.0,
    least_floor=-1_000.0,
    tail=0.0035,
    known_names=4.0,
    strange_names=2.0,
    held_words=1.0,
)
"""Every number is written down: a test of behaviour must not follow the tuning."""
