"""Moments as whole microseconds since 1970-01-01 UTC: exact both ways, and ordered as the moments are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def to_microseconds(moment: datetime) -> int:
    """Microseconds from the epoch to `moment`, which is aware; negative before 1970.

    Example:
        >>> to_microseconds(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
        1000005
    """
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(microseconds: int) -> datetime:
    """The aware UTC moment that `to_microseconds` made a number of.

    Raises:
        ValueError: No `datetime` is so far away; the number was not made by `to_microseconds`.
    """
    try:
        return _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError as error:
        raise ValueError(f"{microseconds} microseconds are beyond the year 9999.") from error
