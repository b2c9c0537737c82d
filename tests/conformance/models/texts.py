"""Texts that every model must take, ordinary ones and odd ones."""

from __future__ import annotations

ORDINARY = [
    "The boiler is serviced every October by the same fitter.",
    "Spare keys hang behind the pantry door.",
    "The garden well pump is switched off in November.",
    "rotateSigningKey() swaps the token key and keeps the old one for an hour.",
]

ODD = [
    "",
    " \t\n ",
    "x",
    "新宿の会議は明日です。🎉",
    "👩‍👩‍👧‍👦 naïve café Zürich",
    "\u200b\u200d\ufeff",
    "שלום עולם مرحبا بالعالم",
    "a" * 3_000,
    "\U0010ffff\x01\x7f",
    "word " * 2_000,
]

ALL = ORDINARY + ODD
