"""Each int8 layer alone against stock: ``python -m tools.layer_numbers MODEL.xml …``.

A weighted operation is cut out of the network with the FakeQuantize operations on its inputs and what follows it up to
the next FakeQuantize, fed a random input over the quantized range, and run by the stock plugin and by ovlpt, with floats
in f32 and in the CPU's default type. Outputs may differ by 1e-5 of the largest value, except where a rounding tie moves
one level: at most in 0.01 % of the elements; a float output in bf16 by its unit, 2**-8 of the largest value. Where bf16
rounds what a FakeQuantize of its own reads, ovlpt may differ more if it is as near to the simulation in f32 as stock. Exit
status 1 when a layer differs more.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import openvino
from rich.console import Console
from rich.table import Table

import ovlpt
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.device.compile import float_types
from ovlpt.device.properties import UNCACHED
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Constant, Model, Node, opset1
from ovlpt.operations import OPERATIONS

_AS_NEAR = 1.1  # of stock's mean squared distance
FOLLOWS = frozenset(
    ("Add", "Subtract", "Multiply", "Relu", "PRelu", "Clamp", "Gelu", "Swish", "Sigmoid", "FakeQuantize")
)


def layers(model: Model) -> Iterator[str]:
    """Names of the weighted operations."""
    for node in model.get_ordered_ops():
        row = OPERATIONS.get(node.get_type_name())
        if row is not None and row.kind == "weighted":
            yield node.get_friendly_name()


def cut_out(model: Model, name: str, generator: np.random.Generator) -> tuple[Model, list[np.ndarray], bool] | None:
    """The layer as a model of its own, an input for it, and whether it ends in a FakeQuantize; None: it is not
    quantized.
    """
    clone = model.clone()
    node = next(each for each in clone.get_ops() if each.get_friendly_name() == name)
    parameters, arrays = [], []
    end = _end(node)
    seen: set[int] = set()
    pending = [end]
    while pending:
        current = pending.pop()
        if current.get_instance_id() in seen:
            continue
        seen.add(current.get_instance_id())
        for port in current.inputs():
            source = port.get_source_output().get_node()
            on_the_way = source.get_instance_id() in seen or _leads_from(source, node)
            if (
                isinstance(source, Constant)
                or on_the_way
                or _is_constant(source)
                or source.get_type_name() == "FakeQuantize"
                or _moves_data(source)
            ):
                pending.append(source)
            else:
                if port.get_partial_shape().is_dynamic:
                    return None
                parameter = opset1.parameter(list(port.get_shape()), port.get_element_type())
                arrays.append(_values(current, list(port.get_shape()), generator))
                port.replace_source_output(parameter.output(0))
                parameters.append(parameter)
    if not any(p.output(0).get_target_inputs() for p in parameters):
        return None
    quantized = any(
        next(iter(p.output(0).get_target_inputs())).get_node().get_type_name() == "FakeQuantize" for p in parameters
    )
    if not quantized:
        return None
    return Model([opset1.result(end)], parameters, name), arrays, end.get_type_name() == "FakeQuantize"


def _values(reader: Node, shape: list[int], generator: np.random.Generator) -> np.ndarray:
    """Uniform over the interval of a FakeQuantize and a little more, else standard normal."""
    details = QuantizationDetails.of(reader) if reader.get_type_name() == "FakeQuantize" else None
    if details is None:
        return generator.standard_normal(shape).astype(np.float32)
    low, high = float(details.input_low.min()), float(details.input_high.max())
    return generator.uniform(1.05 * low, 1.05 * high, shape).astype(np.float32)


def _end(node: Node) -> Node:
    while node.get_type_name() != "FakeQuantize":
        targets = list(node.output(0).get_target_inputs())
        follower = targets[0].get_node() if len(targets) == 1 else None
        if follower is None or follower.get_type_name() not in FOLLOWS:
            return node
        others = [value.get_node() for value in follower.input_values()]
        if sum(not _is_constant(other) for other in others) != 1:
            return node
        node = follower
    return node


def _is_constant(node: Node) -> bool:
    if isinstance(node, Constant):
        return True
    return bool(node.input_values()) and all(_is_constant(value.get_node()) for value in node.input_values())


def _moves_data(node: Node) -> bool:
    row = OPERATIONS.get(node.get_type_name())
    return row is not None and row.precision_preserved and row.data_inputs is not None


def _leads_from(node: Node, layer: Node) -> bool:
    """Whether ``node`` is the layer or lies between it and its end."""
    while node.get_instance_id() != layer.get_instance_id():
        data = [value.get_node() for value in node.input_values() if not _is_constant(value.get_node())]
        if node.get_type_name() not in FOLLOWS or node.get_type_name() == "FakeQuantize" or len(data) != 1:
            return False
        node = data[0]
    return True


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.layer_numbers", description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL.xml")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    table = Table("network", "floats", "layers", "exact, or as near", "a tie moved", "largest share of ties", "wrong")
    failed = False
    for path in options.models:
        core, generator = openvino.Core(), np.random.default_rng(0)
        model = core.read_model(path)
        CommonOptimizations(ovlpt.plugin_config.kernels("CPU")).run_on_model(model)
        alone = [(name, found) for name in layers(model) if (found := cut_out(model, name, generator)) is not None]
        for floats in float_types(core):
            shares = [(name, _share(*found, floats, core), found[2]) for name, found in alone]
            exact = sum(share == 0 for _, share, _ in shares)
            wrong = [f"{name} ({share:.2%})" for name, share, is_tied in shares if share > (1e-4 if is_tied else 0)]
            failed |= bool(wrong)
            largest = max((share for _, share, _ in shares), default=0.0)
            row = [floats, len(alone), exact, len(alone) - exact - len(wrong), f"{largest:.4%}", ", ".join(wrong[:4])]
            table.add_row(path.rsplit("/", 1)[-1].removesuffix(".xml"), *map(str, row))
    Console(width=140).print(table)
    return int(failed)


def _share(layer: Model, arrays: list[np.ndarray], ends_quantized: bool, floats: str, core: openvino.Core) -> float:
    """Of the outputs that differ; none with other floats than f32 where stock is as far from the simulation."""
    properties = {"INFERENCE_PRECISION_HINT": floats, **UNCACHED}
    stock = core.compile_model(layer, "CPU", properties)(arrays)[0]
    mine = ovlpt.compile_model(layer, "CPU", properties, core=core)(arrays)[0]
    bound = 1e-5 if ends_quantized or floats == "f32" else 2.0**-8
    share = float((~(np.abs(mine - stock) <= bound * np.abs(stock).max())).mean())
    if share > 0 and floats != "f32":
        truth = simulate(layer, core)(arrays)[0]
        near, nearer = (float(np.square(each - truth).mean()) for each in (mine, stock))
        share = 0.0 if near <= _AS_NEAR * nearer else share
    return share


if __name__ == "__main__":
    sys.exit(main())
