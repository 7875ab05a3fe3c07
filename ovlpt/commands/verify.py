from __future__ import annotations

import argparse
from collections import Counter

from ovlpt.commands.isa import limited
from ovlpt.commands.printing import console, table, write_result
from ovlpt.commands.settings import check_count, settings
from ovlpt.commands.virtual import on_virtual
from ovlpt.device.loading import read_model
from ovlpt.inspect.inputs import load_inputs
from ovlpt.inspect.verify import EQUAL, WRONG, verify
from ovlpt.openvino_api import Core


def _call(options: argparse.Namespace) -> int:
    check_count(options.layers, "--layers", "verify")
    out, config, core = console(options.json), settings(options), Core()
    arrays = load_inputs(options.input, read_model(options.model, core)) if options.input is not None else None
    records = verify(
        options.model, arrays, options.method, options.device, core, options.layers, options.against, config
    )
    counts = ", ".join(f"{count} {status}" for status, count in Counter(record.status for record in records).items())
    wrong = next((record.name for record in records if record.status == WRONG), None)
    out.print(counts if wrong is None else f"{counts}; the first wrong layer: {wrong}")
    rows = table("type", "status", ">mismatches", ">total", "layer")
    for record in records:
        style = {EQUAL: None, WRONG: "red"}.get(record.status, "yellow")
        rows.add_row(record.type, record.status, str(record.mismatches), str(record.total), record.name, style=style)
    out.print(rows)
    write_result(options, {"method": options.method, "records": [record.to_json() for record in records]})
    return 0 if wrong is None else 1


call = on_virtual(_call, limited(_call), computes=True)
