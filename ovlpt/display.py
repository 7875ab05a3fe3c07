"""Tables for notebooks: HTML, and pandas where it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_NUMBER = "text-align:right;font-variant-numeric:tabular-nums"
_TEXT = "text-align:left;overflow-wrap:anywhere"


def html_table(columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "", most: int = 100) -> str:
    """A table with at most ``most`` rows; how many were left out stands below it."""
    head = "".join(f'<th style="text-align:left">{escape(column)}</th>' for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:most])
    rest = f"<p>… and {len(rows) - most} more</p>" if len(rows) > most else ""
    title = f'<caption style="text-align:left;padding:.4em 0"><b>{escape(caption)}</b></caption>' if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(value: object) -> str:
    if isinstance(value, (int, float)):
        return f'<td style="{_NUMBER}">{value if isinstance(value, int) else f"{value:.3f}"}</td>'
    return f'<td style="{_TEXT}">{escape(str(value))}</td>'


def to_frame(columns: Iterable[str], rows: Iterable[Sequence[object]]):
    """A pandas DataFrame. Raises `InputError` without pandas."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError as error:
        from ovlpt.trace import InputError  # which imports this module

        raise InputError("a DataFrame needs the package pandas: pip install pandas") from error
    return DataFrame(list(rows), columns=list(columns))
