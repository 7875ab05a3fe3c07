"""The simulation of many workers runs, and prints a figure for each combination."""

from __future__ import annotations

from tools import scaling


def test_the_table_has_a_row_for_each_length_of_a_task(capsys):
    assert scaling.main(["--workers", "1", "4", "--seconds", "0.001", "0.002", "--rounds", "2"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 4
    assert all(float(cell.strip(" %")) > 0 for row in rows[2:] for cell in row.split("|")[2:-1])
