from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from ovlpt.commands.printing import console, table, write_result
from ovlpt.device.loading import label_of, quantization_of, read_float
from ovlpt.device.saving import check_output, save_model
from ovlpt.fusions import fuse
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.stamp import has_lost_stamp, is_transformed
from ovlpt.inspect.inputs import load_arrays
from ovlpt.openvino_api import Core, Model
from ovlpt.trace import InputError, Outcome, Trace

_NOT_COUNTED = frozenset(("Parameter", "Result", "Constant"))


def call(options: argparse.Namespace) -> int:
    check_output(options.output, options.model)
    values = dict(map(_value, options.value))
    source = read_float(options.model, Core())
    if is_transformed(source) or has_lost_stamp(source):
        raise InputError(
            f"{label_of(options.model, source)} is transformed already; give the model before quantization"
        )
    trace = Trace()
    fused = fuse(source, trace, values)
    operations = {"before": operations_of(source), "after": operations_of(fused)}
    out = console(options.json)
    _print_events(out, trace)
    if vectors := _inputs_of_vectors(fused):
        out.print(
            f"inputs without a value: {', '.join(vectors)}; if they are parameters of the network, "
            "give each as --value NAME=FILE.npy",
            soft_wrap=True,
        )
    out.print(_operations_table(**operations))
    save_model(fused, options.output)
    out.print("\n".join(_next(source, options.output)), soft_wrap=True)
    write_result(options, {"output": options.output, **_events(trace), "operations": operations})
    return 0


def _value(text: str) -> tuple[str, np.ndarray]:
    """Name and value of ``NAME=…``. A name may have "=" in it, a file may not."""
    name, _, given = text.rpartition("=")
    if not name or not given:
        raise InputError(f'cannot read the value "{text}"; write NAME=FILE.npy, NAME=true, NAME=false or NAME=NUMBER')
    if given.lower() in ("true", "false"):
        return name, np.array(given.lower() == "true")
    try:
        return name, np.array(float(given))
    except ValueError:
        return name, _array(given)


def _array(path: str) -> np.ndarray:
    arrays = load_arrays(path)
    if [*arrays] != [""]:
        raise InputError(f'"{path}" is an archive of arrays; give one array, as numpy.save writes it')
    return arrays[""]


def _inputs_of_vectors(model: Model) -> list[str]:
    """Names of inputs that may be parameters of a normalization: vectors, beside an input that is none."""
    shapes = {each.get_friendly_name(): each.get_output_partial_shape(0) for each in model.get_parameters()}
    sizes = {name: [*shape.to_shape()] for name, shape in shapes.items() if shape.is_static}
    vectors = [name for name, shape in sizes.items() if shape and np.prod(shape) == max(shape)]
    return vectors if len(vectors) < len(shapes) else []


def operations_of(model: Model) -> dict[str, int]:
    """How many operations of each type there are, bodies included."""
    counted = Counter(node.get_type_name() for node in all_nodes(model))
    return {kind: count for kind, count in sorted(counted.items()) if kind not in _NOT_COUNTED}


def _print_events(out, trace: Trace) -> None:
    """How often each fusion was made, and every structure that stays, with the reason."""
    made = Counter(event.transformation for event in trace if event.outcome is Outcome.TRANSFORMED)
    rows = table("fusion", ">made")
    for fusion, count in made.items():
        rows.add_row(fusion, str(count))
    out.print(rows if made else "nothing to fuse")
    stay = [event for event in trace if event.outcome is not Outcome.TRANSFORMED]
    if stay:
        rows = table("stays", "not made", "why")
        for event in stay:
            rows.add_row(f"{event.operation} {event.node}", event.transformation, str(event.reason))
        out.print(rows)


def _operations_table(before: Mapping[str, int], after: Mapping[str, int]):
    rows = table("operation", ">before", ">after")
    for kind in sorted({*before, *after}):
        rows.add_row(kind, str(before.get(kind, 0)), str(after.get(kind, 0)))
    rows.add_row("all", str(sum(before.values())), str(sum(after.values())))
    return rows


def _events(trace: Trace) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {"fused": [], "not_fused": []}
    for event in trace:
        entry: dict[str, object] = {"fusion": event.transformation, "operation": event.operation, "name": event.node}
        if event.outcome is Outcome.TRANSFORMED:
            found["fused"].append(entry)
        else:
            found["not_fused"].append({**entry, "reason": asdict(event.reason)})
    return found


def _next(source: Model, path: str) -> Sequence[str]:
    """What comes next: of a float model the code that quantizes it."""
    if quantization_of(source) in ("activations", "dynamic", "f8"):
        return (
            "the model was quantized before it was fused: what the quantizer saw as separate operations stays quantized separately",
        )
    text = json.dumps(path, ensure_ascii=False)
    return (
        f"model = openvino.Core().read_model({text})",
        'openvino.save_model(nncf.quantize(model, nncf.Dataset(samples)), "quantized.xml")',
    )
