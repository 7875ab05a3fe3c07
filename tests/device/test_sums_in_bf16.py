"""Products of integers less sums that stand for zero points, where floats are bf16: the numbers tell something on a CPU
that computes in bf16 only. That the nodes are marked is told on any.
"""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest

import ovlpt
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Model, Node, opset1
from tests.networks import const, int8_weights, model, parameter, quantized
from tools.real.measure import distance

WEIGHTED = ("MatMul", "FullyConnected")
BF16 = {"INFERENCE_PRECISION_HINT": "bf16"}
LENGTH = 256  # of what is summed

# The integers are of one sign, the real numbers are not; two products do not saturate 16 bits.
FIRST, SECOND = (-1.0, 1.55), (-1.68, 0.87)


def tensors(batch: int, transposed: bool) -> tuple[Node, list[Node]]:
    first = parameter([batch, 16, LENGTH])
    second = parameter([batch, 8, LENGTH] if transposed else [batch, LENGTH, 8], name="y")
    product = opset1.matmul(quantized(first, *FIRST), quantized(second, *SECOND), False, transposed)
    return product, [first, second]


def of_weights(batch: int, transposed: bool) -> tuple[Node, list[Node]]:
    data = parameter([batch, 16, LENGTH])
    shape = (8, LENGTH) if transposed else (LENGTH, 8)
    stored = opset1.convert(const(np.random.default_rng(0).integers(0, 256, shape), "u8"), "f32")
    weights = opset1.multiply(opset1.subtract(stored, const(200)), const(0.01))
    return opset1.matmul(quantized(data, *FIRST), weights, False, transposed), [data]


AFTER: dict[str, Callable[[Node], Node]] = {
    "nothing": lambda node: node,
    "quantization": lambda node: opset1.relu(quantized(node, -6, 6)),
    "bias": lambda node: opset1.relu(opset1.add(node, const(np.linspace(-1, 1, 8)))),
    "sum of tensors": lambda node: opset1.add(node, opset1.tanh(node)),
}


def net(build, transposed: bool, after: str, batch: int = -1) -> Model:
    """Before another layer: at the end of a model the plugin leaves floats as they are."""
    product, inputs = build(batch, transposed)
    return model(opset1.matmul(AFTER[after](product), int8_weights([8, 8], seed=1), False, True), inputs)


def values(built: Model) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    shapes = ([2, *(int(size.get_length()) for size in list(port.get_partial_shape())[1:])] for port in built.inputs)
    return [random.uniform(-0.25, 0.25, shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
@pytest.mark.parametrize("build", [tensors, of_weights], ids=lambda each: each.__name__)
@pytest.mark.parametrize("is_saved", [False, True], ids=["compiled", "saved"])
def test_numbers_in_bf16(is_saved, build, transposed, after, core, tmp_path):
    """The product left its kernel in bf16, and the sums were rounded to it: off by as much as what is left of them."""
    if "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this CPU, or the instruction set that it is held to, does not compute in bf16")
    built = net(build, transposed, after)
    if is_saved:
        ovlpt.save_model(ovlpt.transform(built, core=core), tmp_path / "net.xml")
        compiled = core.compile_model(tmp_path / "net.xml", "CPU", BF16)
    else:
        compiled = ovlpt.compile_model(built, config=BF16, core=core)
    inputs = values(built)
    assert distance([simulate(built, core)(inputs)[0]], [compiled(inputs)[0]]) > 40
    layers = [layer for layer in ovlpt.execution_types(compiled).executed if layer.layer_type in WEIGHTED]
    assert layers[0].precision == "u8"


@pytest.mark.parametrize("build", [tensors, of_weights], ids=lambda each: each.__name__)
def test_marks(build, core, tmp_path):
    """They are in a saved model, whatever the CPU that it is made on: of the sums, the product and a Clamp after it."""
    ovlpt.save_model(ovlpt.transform(net(build, False, "quantization"), core=core), tmp_path / "net.xml")
    layers = ElementTree.parse(tmp_path / "net.xml").findall("layers/layer")
    marked = {layer.get("name", ""): layer.get("type") for layer in layers if _is_marked(layer)}
    sums = {layer.get("name", ""): layer.get("type") for layer in layers if "Sums" in layer.get("name", "")}
    sums = {name: kind for name, kind in sums.items() if kind != "Const"}  # those of weights are known
    assert len(sums) >= 4
    assert marked.items() >= sums.items()
    assert {marked[name] for name in marked.keys() - sums.keys()} <= {"Clamp", "MatMul"}


def _is_marked(layer: ElementTree.Element) -> bool:
    found = {each.get("name"): each.get("value") for each in layer.findall("rt_info/attribute")}
    return found.get("DisablePrecisionConversion") == "dynamic:f16" or "precise" in found
