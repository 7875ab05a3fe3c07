"""What operations share that take values from several inputs: Maximum, Minimum, Select."""

from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant, precision_of
from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.weights import folded_constant
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Node, Output
from ovlpt.precisions import NUMPY
from ovlpt.trace import reject, reject_unless

_STEP = 1e-4  # of the scale: how near a constant lies to a quantized value


class EqualDequantizationsTransformation(LayerTransformation):
    """``op(dq(x), dq(y)) == dq(op(x, y))`` where each result is one of the inputs' values and ``dq`` is the same.

    A constant input takes part where it consists of values that ``dq`` gives.
    """

    def can_be_transformed(self, node: Node) -> None:
        found = self._quantized(node)
        self.check_row(node, found)
        for port in self.operation.data_inputs:
            self._raw(node, port, found)

    def transform(self, node: Node) -> None:
        found = self._quantized(node)
        original, targets = precision_of(node.output(0)), self.consumers_of(node.output(0))
        for port, value in {port: self._raw(node, port, found) for port in self.operation.data_inputs}.items():
            node.input(port).replace_source_output(value)
        node.validate_and_infer_types()
        name = node.get_friendly_name()
        self.dequantize(node.output(0), name, targets, found, found.scale, found.zero_point, original)

    def _quantized(self, node: Node) -> Dequantization:
        """The dequantization of the first input that is not constant."""
        data = [port for port in self.operation.data_inputs if folded_constant(node.input_value(port)) is None]
        reject_unless(data, "constant", "its inputs are constant")
        found = self.require_dequantization(node, data[0])
        if self.params.update_precisions:
            reject_unless(found.is_low_precision, "activation_precision", f"input {data[0]} is {found.data_precision}")
        return found

    def _raw(self, node: Node, port: int, found: Dequantization) -> Output:
        """The input without its dequantization; raises `Rejected` where that is another one."""
        values = folded_constant(node.input_value(port))
        if values is not None:
            return constant(self._integers(values, port, found), found.data_precision).output(0)
        other = self.require_dequantization(node, port)
        reject_unless(
            other.data_precision == found.data_precision,
            "mixed_precisions",
            f"the inputs are {' and '.join(sorted({other.data_precision, found.data_precision}))}",
        )
        equal = _equal(other.scale, found.scale, 1.0) and _equal(other.zero_point, found.zero_point, 0.0)
        reject_unless(equal, "different_dequantizations", f"input {port} has another scale or zero point")
        return other.data

    @staticmethod
    def _integers(values: np.ndarray, port: int, found: Dequantization) -> np.ndarray:
        scale = np.ones((), np.float32) if found.scale is None else found.scale
        zero_point = np.zeros((), np.float32) if found.zero_point is None else found.zero_point
        if found.data_precision not in NUMPY or not (scale.size == zero_point.size == 1):
            reject("per_channel", f"input {port} is constant, and the scale differs between channels")
        real = values / scale.reshape(-1) + zero_point.reshape(-1)
        integers = np.clip(np.rint(real), *_limits(found.data_precision)).reshape(values.shape)
        reject_unless(
            (np.abs(real.reshape(values.shape) - integers) < _STEP).all(),
            "constant_off_grid",
            f"input {port} is constant, and {found.data_precision} with this scale cannot hold {float(values.flat[0]):g}",
        )
        return integers


def _limits(precision: str) -> tuple[float, float]:
    kind = NUMPY[precision]
    limits = np.iinfo(kind) if np.issubdtype(kind, np.integer) else np.finfo(kind)
    return limits.min, limits.max


def _equal(one: np.ndarray | None, other: np.ndarray | None, absent: float) -> bool:
    """Whether two constants stand for the same values, each on its own input."""
    values = [np.full((), absent, np.float32) if each is None else each for each in (one, other)]
    if all(each.size == 1 for each in values):
        return values[0].flat[0] == values[1].flat[0]
    return np.array_equal(values[0], values[1])
