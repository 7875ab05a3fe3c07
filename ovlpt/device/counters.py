"""Performance counters as benchmark_app writes them (``-report_type average_counters``).

One line a layer, fields apart by semicolons: layerName;execStatus;layerType;execType;realTime (ms);cpuTime (ms). The
Python and the C++ tool differ: "Status.EXECUTED" or "EXECUTED", with or without a semicolon at the end; both are read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

from ovlpt.device.execution_types import CONSTANT, ExecutionTypes, LayerExecution
from ovlpt.files import read_text, write_text
from ovlpt.trace import InputError

COLUMNS = ("layerName", "execStatus", "layerType", "execType", "realTime (ms)", "cpuTime (ms)")


def read_counters(path: str | Path) -> ExecutionTypes:
    """The layers of a report; several reports in one file (``detailed_counters``) become their mean times.

    A report names neither precisions nor the operations that a layer holds: ``precision`` is empty, and
    ``original_names`` has the layer's own name. Raises `InputError` for a file that is missing or no such report.
    """
    rows = [line.split(";") for line in read_text(path, "a counters report of benchmark_app").split("\n")]
    if not set(COLUMNS) <= set(rows[0]):
        raise InputError(
            f'"{path}" is not a counters report of benchmark_app: its first line is not {";".join(COLUMNS)}'
        )
    places = [rows[0].index(column) for column in COLUMNS]
    found: dict[str, list[list[str]]] = defaultdict(list)
    for number, row in enumerate(rows[1:], 2):
        if row == [""] or row[0] in ("Total", COLUMNS[0]):
            continue
        try:
            fields = [row[place] for place in places]
            times = float(fields[4]), float(fields[5])
            if not all(map(math.isfinite, times)):
                raise ValueError(times)
        except (IndexError, ValueError) as error:
            raise InputError(f'"{path}", line {number}: not {len(COLUMNS)} fields that end in two times') from error
        found[fields[0]].append(fields)
    return ExecutionTypes([_layer(records) for records in found.values()])


def write_counters(path: str | Path, layers: ExecutionTypes) -> None:
    """Write the layers that have counters. Raises `InputError` for a file that cannot be written."""
    counted = [layer for layer in layers if layer.status not in ("", CONSTANT)]
    lines = [";".join(COLUMNS)]
    for layer in counted:
        # a semicolon in a name would be read as the end of the field
        fields = (layer.name.replace(";", ","), layer.status, layer.layer_type, layer.exec_type)
        lines.append(";".join((*fields, f"{layer.real_time:.3f}", f"{layer.cpu_time:.3f}")))
    totals = (sum(getattr(layer, field) for layer in counted) for field in ("real_time", "cpu_time"))
    lines.append(";".join(("Total", "", "", "", *(f"{total:.3f}" for total in totals))))
    write_text(path, "\n".join(lines) + "\n\n")


def _layer(records: list[list[str]]) -> LayerExecution:
    name, status, layer_type, exec_type = records[0][:4]
    real, cpu = (sum(float(record[at]) for record in records) / len(records) for at in (4, 5))
    if layer_type.startswith("FullyConnected"):  # FullyConnectedQuantizedLegacy, FullyConnectedCompressed
        layer_type = "FullyConnected"
    return LayerExecution(name, layer_type, status.rsplit(".", 1)[-1], exec_type, "", "", real, cpu, (name,))
