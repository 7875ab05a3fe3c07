"""The interpreter: a transformed model node by node, its int8 layers in exact integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ovlpt.graph.constants import is_real, precision_of, values_of
from ovlpt.graph.quantization_details import interval_end
from ovlpt.interpreter.accumulators import accumulator, pads, saturation
from ovlpt.interpreter.evaluation import evaluate
from ovlpt.interpreter.layer import Layer, integer_source, layers_of
from ovlpt.interpreter.post_operations import apply, fake_quantized, finish
from ovlpt.openvino_api import Constant, Model, Node, Output
from ovlpt.precisions import NUMPY
from ovlpt.reference import max_pool
from ovlpt.reference.accumulation import sliding_windows
from ovlpt.reference.methods import resolve
from ovlpt.trace import InputError

_ELEMENTWISE = {"Add": np.add, "Subtract": np.subtract, "Multiply": np.multiply}
_UNARY = frozenset(("Relu", "Clamp"))


def execute(
    model: Model,
    inputs: Sequence[np.ndarray],
    method: str = "openvino",
    values: dict[str, np.ndarray] | None = None,
    saturates: bool = False,
) -> list[np.ndarray]:
    """The outputs of a model that `ovlpt.transform` made, lowered or not, for one array per input.

    ``values``: a dictionary that takes the value of every node by its friendly name; nodes inside an int8
    layer (see `Layer`) have none. ``method``: whose arithmetic follows the accumulators
    (`ovlpt.reference.METHODS`). ``saturates``: accumulators as on an x86 CPU without VNNI, which sums pairs of
    products in 16 bits (`ovlpt.device.saturates` tells of the CPU at hand).

    A weighted operation that reads u8 or i8 is an exact integer accumulator of `ovlpt.reference`. What
    follows it up to the FakeQuantize is, for "openvino", the chain of post-operations that the CPU plugin
    fuses (`ovlpt.fake_quantize.predict`), else the framework's own requantization; there the scale is the
    float32 product that LPT made of the data's and the weights' scale, so rules that want the double product
    (D1, D2) may be off by one at ties. FakeQuantize nodes that stand alone follow the definition, or the
    framework's quantize. Add, Subtract, Multiply, Relu, Clamp, MaxPool and a real MatMul are numpy; every
    other operation is evaluated by OpenVINO's own reference (``Node.evaluate``), also weighted ones whose
    inputs are real, and the few that have none (Roll, GatherElements …) run alone on the CPU plugin.

    Raises `InputError` for arrays that do not fit the inputs, an operation that OpenVINO cannot evaluate, and
    a layer that the method does not have.
    """
    interpreter = Interpreter(model, inputs, method, saturates)
    for _ in interpreter.run():
        pass
    if values is not None:
        values.update(interpreter.named_values())
    return interpreter.outputs()


def _show_hidden_ends(model: Model) -> None:
    for node in model.get_ops():
        if node.get_type_name() == "FakeQuantize":
            for port in node.inputs()[1:]:
                if (end := interval_end(port.get_source_output())) is not None:
                    port.replace_source_output(end.output(0))


class Interpreter:
    """One run of a model, which can be followed layer by layer.

    ``model`` is a clone with the shapes of the inputs. Arguments and errors as in `execute`.
    """

    def __init__(self, model: Model, inputs: Sequence[np.ndarray], method: str = "openvino", saturates: bool = False):
        self.method, self.saturates = resolve(method), saturates
        self.model = model.clone()
        _show_hidden_ends(self.model)
        if len(inputs) != len(model.inputs):
            raise InputError(
                f"the model has {len(model.inputs)} inputs and {len(inputs)} arrays are given; give one each"
            )
        try:
            if self.model.is_dynamic():
                self.model.reshape(
                    {port: list(np.shape(array)) for port, array in zip(self.model.inputs, inputs, strict=True)}
                )
        except RuntimeError as error:
            raise InputError(f"the arrays do not fit the model: {str(error).strip().splitlines()[-1]}") from error
        self._values: dict[tuple[int, int], np.ndarray] = {}
        for port, array in zip(self.model.inputs, inputs, strict=True):
            array = np.asarray(array, NUMPY.get(precision_of(port)))
            if list(array.shape) != list(port.get_shape()):
                raise InputError(
                    f'input "{port.get_node().get_friendly_name()}" takes {list(port.get_shape())}, '
                    f"the array has {list(array.shape)}"
                )
            self._values[_key(port.get_node().output(0))] = array
        self.layers = list(layers_of(self.model))

    def run(self) -> Iterator[tuple[Layer, np.ndarray]]:
        """Compute node after node; after each int8 layer yield it with its accumulator (int64)."""
        starts = {layer.node.get_instance_id(): layer for layer in self.layers}
        for node in self.model.get_ordered_ops():
            if node.get_type_name() in ("Parameter", "Result") or _key(node.output(0)) in self._values:
                continue
            layer = starts.get(node.get_instance_id())
            if layer is None:
                if all(_key(value) in self._values for value in node.input_values()):
                    self._evaluate(node)
                continue  # otherwise it lies inside a layer
            data, weights = (self.value(value) for value in node.input_values()[:2])
            integers = accumulator(node, data, weights)
            if self.saturates:
                stored = self.value(integer_source(node.input_value(0)))
                integers += saturation(node, stored, stored.astype(np.int32) - data.astype(np.int32), weights)
            result = finish(layer, integers, data.shape[1] if data.ndim > 1 else 1, self.method)
            self._values[_key(layer.end.output(0))] = result
            yield layer, integers

    def value(self, output: Output) -> np.ndarray:
        """The value of an output that has been computed."""
        return self._values[_key(output)]

    def outputs(self) -> list[np.ndarray]:
        return [self.value(result.input_value(0)) for result in self.model.get_results()]

    def named_values(self) -> dict[str, np.ndarray]:
        found = {}
        for node in self.model.get_ordered_ops():
            if not isinstance(node, Constant) and len(node.outputs()) and _key(node.output(0)) in self._values:
                for port in node.outputs():
                    if _key(port) not in self._values:
                        continue
                    suffix = f".{port.get_index()}" if len(node.outputs()) > 1 else ""
                    found[node.get_friendly_name() + suffix] = self.value(port)
        return found

    def _evaluate(self, node: Node) -> None:
        arrays = [self.value(value) for value in node.input_values()]
        kind, real = node.get_type_name(), is_real(precision_of(node.output(0)))
        if isinstance(node, Constant):
            results = [node.data if precision_of(node.output(0)) in (*NUMPY, "boolean") else values_of(node)]
        elif kind == "MaxPool" and not any(port.get_target_inputs() for port in node.outputs()[1:]):
            results = [_max_pool(node, arrays[0])]
        elif kind == "FakeQuantize":
            results = [fake_quantized(node, arrays[0].astype(np.float32, copy=False), self.method, arrays[1:])]
        elif precision_of(node.output(0)) != "f32" or not real:
            results = evaluate(node, arrays)
        elif kind in _ELEMENTWISE and _broadcasts(node):
            results = [_ELEMENTWISE[kind](*(array.astype(np.float32, copy=False) for array in arrays))]
        elif kind in _UNARY:
            results = [apply(node, arrays[0].astype(np.float32, copy=False), self.method)]
        elif kind == "MatMul":
            results = [_product(node, *arrays)]
        else:
            results = evaluate(node, arrays)
        for port, result in zip(node.outputs(), results, strict=False):  # indices without a reader have no value
            self._values[_key(port)] = result


def _key(output: Output) -> tuple[int, int]:
    return output.get_node().get_instance_id(), output.get_index()


def _broadcasts(node: Node) -> bool:
    return node.get_attributes().get("auto_broadcast", "numpy") == "numpy"


def _product(node: Node, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    attributes = node.get_attributes()
    a, b = a.astype(np.float32, copy=False), b.astype(np.float32, copy=False)
    a = a.swapaxes(-1, -2) if attributes["transpose_a"] and a.ndim > 1 else a
    b = b.swapaxes(-1, -2) if attributes["transpose_b"] and b.ndim > 1 else b
    return a @ b


def _max_pool(node: Node, data: np.ndarray) -> np.ndarray:
    attributes = node.get_attributes()
    kernel, strides = attributes["kernel"], attributes["strides"]
    dilations = attributes.get("dilations") or [1] * len(kernel)
    begin, _ = pads(data.shape[2:], kernel, {"dilations": dilations, **attributes})
    outputs = node.get_output_shape(0)[2:]  # they say how far it reads, whichever way the division is rounded
    reach = zip(outputs, strides, dilations, kernel, data.shape[2:], begin, strict=True)
    end = [(out - 1) * s + d * (k - 1) + 1 - n - b for out, s, d, k, n, b in reach]
    arguments = {"strides": strides, "pads_begin": begin, "dilations": dilations}
    if data.dtype.kind == "f":
        return sliding_windows(data, kernel, pads_end=end, fill=-np.inf, **arguments).max(
            axis=tuple(range(data.ndim, 2 * data.ndim - 2))
        )
    return max_pool(data, kernel, pads_end=end, method="openvino", **arguments)
