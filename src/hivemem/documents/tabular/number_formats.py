"""What number formats mean: which are dates, and the words that they are found by.

Source of the numbers and codes: ISO/IEC 29500-1, 18.8.30 (numFmt).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

BUILT_IN: dict[int, str] = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "mm-dd-yy",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "m/d/yy h:mm",
    37: "#,##0 ;(#,##0)",
    38: "#,##0 ;[Red](#,##0)",
    39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;[Red](#,##0.00)",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mmss.0",
    48: "##0.0E+0",
    49: "@",
}
"""Formats that a file names by number alone; 0 is the general one."""

# What is shown as it stands: quoted text, escaped and padding characters, colours and conditions.
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?!h+\]|m+\]|s+\])[^\]]*\]', re.IGNORECASE)
_LAST_SERIAL = 2_958_466
"""The day after 9999-12-31."""

_CURRENCIES = {"€": "eur euro", "$": "usd dollar", "£": "gbp pound", "¥": "jpy yen", "₹": "inr rupee"}


@lru_cache(maxsize=4096)
def date_parts(code: str) -> str:
    """`date`, `time`, `datetime` or, for a format that shows no time, an empty string.

    Example:
        >>> date_parts("yyyy-mm-dd"), date_parts("[h]:mm"), date_parts('0.0 "days"')
        ('date', 'time', '')
    """
    plain = _LITERAL.sub("", code.split(";")[0]).lower()
    if "general" in plain:
        return ""
    has_time = "h" in plain or "s" in plain
    has_date = "y" in plain or "d" in plain or ("m" in plain and not has_time)
    return "datetime" if has_date and has_time else "date" if has_date else "time" if has_time else ""


def moment(serial: float, code: str, *, epoch_1904: bool) -> str | None:
    """The ISO 8601 text of a date serial number as its format shows it; None when it is no date.

    Durations of a day or more, and times alone, are `hh:mm:ss`. Serial 60 of the 1900 system is a day
    that never was (1900-02-29), and becomes 1900-02-28.
    """
    kind = date_parts(code)
    if not kind or not 0 <= serial < _LAST_SERIAL:
        return None
    if kind == "time" or (serial < 1 and not epoch_1904):
        seconds = round(serial * 86_400)
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    if epoch_1904:
        start = datetime(1904, 1, 1)
    else:
        start = datetime(1899, 12, 31) if serial < 60 else datetime(1899, 12, 30)
    try:
        at = start + timedelta(days=int(serial), seconds=round((serial % 1) * 86_400))
    except OverflowError:
        return None
    return at.date().isoformat() if kind == "date" and at.time() == datetime.min.time() else at.isoformat()


@lru_cache(maxsize=4096)
def format_words(code: str) -> str:
    """Words that describe a format, for searching: `percent`, `date`, `currency euro`, ..."""
    words = [code]
    if "%" in code:
        words.append("percent percentage")
    kind = date_parts(code)
    if kind:
        words.append("date time" if kind == "datetime" else kind)
    found = [names for sign, names in _CURRENCIES.items() if sign in code]
    if found or "[$" in code:
        words += ["currency money", *found]
    if "e+" in code.lower():
        words.append("scientific")
    return " ".join(words)
