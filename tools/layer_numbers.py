"""Each int8 layer alone against stock: ``python -m tools.layer_numbers MODEL.xml …``.

A weighted operation is cut out of the network with the FakeQuantize operations on its inputs and what follows it up to
the next FakeQuantize, fed a random input over the quantized range, and run by the stock plugin and by ovlpt, with floats
in f32 and in the CPU's default type. Outputs may differ by 1e-5 of the largest value, except where a rounding tie moves
one level: at most in 0.01 % of the elements; a float output in bf16 by its unit, 2**-8 of the largest value. Where bf16
rounds what a FakeQuantize of its own reads, ovlpt may differ more if it is as near to the simulation in f32 as stock. Sizes
that are open stay so, and are run as those of one sample. Exit status 1 when a layer differs more, or where a network has
no layer to look at.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Mapping

import numpy as np
import openvino
from rich.console import Console
from rich.table import Table

import ovlpt
from ovlpt.common_optimizations import CommonOptimizations
from ovlpt.device.compile import float_types
from ovlpt.device.properties import UNCACHED
from ovlpt.graph.constants import meets
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.inputs import typical_inputs
from ovlpt.openvino_api import Constant, Model, Node, PartialShape, opset1
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


def sizes_of_one_sample(model: Model) -> dict[str, list[PartialShape]]:
    """The shapes of what each operation reads, by its name, where the inputs have the sizes of one generated sample."""
    fixed = model.clone()
    if fixed.is_dynamic():
        samples = typical_inputs(model)
        fixed.reshape({port: list(values.shape) for port, values in zip(fixed.inputs, samples, strict=True)})
    return {node.get_friendly_name(): [port.get_partial_shape() for port in node.inputs()] for node in fixed.get_ops()}


def cut_out(
    model: Model, name: str, sizes: Mapping[str, list[PartialShape]], generator: np.random.Generator
) -> tuple[Model, list[np.ndarray], bool] | None:
    """The layer as a model of its own, an input for it, and whether it ends in a FakeQuantize; None: it is not
    quantized, or its size depends on data. ``sizes``: as `sizes_of_one_sample` has them.
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
                shape = sizes[current.get_friendly_name()][port.get_index()]
                if shape.is_dynamic or port.get_element_type().is_integral():
                    return None
                parameter = opset1.parameter(port.get_partial_shape(), port.get_element_type())
                arrays.append(_values(current, list(shape.to_shape()), generator))
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
    return not meets(node, _is_source, lambda each: [value.get_node() for value in each.input_values()])


def _is_source(node: Node) -> bool:
    """Whether it brings data into the network."""
    return not node.input_values() and not isinstance(node, Constant)


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
        sizes = sizes_of_one_sample(model)
        cut = ((name, cut_out(model, name, sizes, generator)) for name in layers(model))
        alone = [(name, found) for name, found in cut if found is not None]
        failed |= not alone
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
