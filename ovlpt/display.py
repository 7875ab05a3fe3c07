"""What people are shown: tables for notebooks (HTML, and pandas where it is installed), and text for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from ovlpt.errors import InputError

_OBEYED = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"))  # categories of characters that are not only shown
_NUMBER = "text-align:right;font-variant-numeric:tabular-nums"
_TEXT = "text-align:left;overflow-wrap:anywhere"


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "", most: int = 100) -> str:
    """A table with at most ``most`` rows; how many were left out stands below it."""
    from html import escape  # here, not above: for notebooks only

    def cell(value: object) -> str:
        if isinstance(value, (int, float)):
            return f'<td style="{_NUMBER}">{value if isinstance(value, int) else f"{value:.3f}"}</td>'
        return f'<td style="{_TEXT}">{escape(str(value))}</td>'

    head = "".join(f'<th style="text-align:left">{escape(column)}</th>' for column in columns)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows[:most])
    rest = f"<p>… and {len(rows) - most} more</p>" if len(rows) > most else ""
    title = f'<caption style="text-align:left;padding:.4em 0"><b>{escape(caption)}</b></caption>' if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def to_frame(columns: Iterable[str], rows: Iterable[Sequence[object]]):
    """A pandas DataFrame. Raises `InputError` without pandas."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError as error:
        raise InputError("a DataFrame needs the package pandas: pip install pandas") from error
    return DataFrame(list(rows), columns=list(columns))


def printable(text: str, lines: bool = True) -> str:
    """``text`` with everything escaped that a terminal would not just show: what moves the cursor, sets colours,
    reverses the writing direction or cannot be encoded. ``lines=False``: line breaks, too.
    """
    return "".join(
        each
        if unicodedata.category(each) not in _OBEYED or (lines and each == "\n")
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )
