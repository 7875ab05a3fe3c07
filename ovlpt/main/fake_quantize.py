from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ovlpt.attributes import Bias, DisableCleanup
from ovlpt.graph.constants import constant, constant_above, is_constant_above, precision_of
from ovlpt.graph.consumers import readers_of
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.layer_transformation import LayerTransformation, replace_output, shape_of
from ovlpt.openvino_api import Constant, Node, Output
from ovlpt.operations import OPERATIONS, WEIGHTED
from ovlpt.operations.families import AFFINE
from ovlpt.precisions import INT8, REAL
from ovlpt.trace import reject_unless

_FUSIBLE = AFFINE | {"Convert"}


class FakeQuantizeTransformation(LayerTransformation):
    """``FQ(x * a; il, ih) == FQ(x; il / a, ih / a)``: elementwise operations before it move into its input interval.

    Likewise ``x - a`` and ``x + a`` shift the interval, and a Convert that only widens is read past.
    """

    operation = OPERATIONS["FakeQuantize"]

    def can_be_transformed(self, node: Node) -> None:
        parent = node.input_value(0).get_node()
        is_elementwise = parent.get_type_name() in _FUSIBLE
        reject_unless(is_elementwise, "no_elementwise", "no elementwise operation to fuse above it")
        details = self.details(node)
        reject_unless(details is not None, "dynamic_intervals", "a bound of its intervals is not a constant")
        fused = self._fused(parent, details, node)
        reject_unless(
            fused is not None, "no_elementwise", f"the {parent.get_type_name()} above cannot be fused into it"
        )

    def transform(self, node: Node) -> None:
        details = self.details(node)
        low, high, data, below = details.input_low, details.input_high, node.input_value(0), node
        while (fused := self._fused(data.get_node(), details, below, low, high)) is not None:
            below = data.get_node()
            data, low, high = fused
        ends = [constant(end).output(0) for end in (low, high, details.output_low, details.output_high)]
        quantize = fake_quantize_node(data, ends, details.levels, precision_of(node.output(0)))
        quantize.set_friendly_name(node.get_friendly_name())
        self.attributes.move(node, quantize)
        replace_output(node.output(0), quantize.output(0))

    def _fused(self, parent: Node, details: QuantizationDetails, below: Node, low=None, high=None):
        """(data, input low, input high) with ``parent``, which ``below`` reads, folded in, or None."""
        low = details.input_low if low is None else low
        high = details.input_high if high is None else high
        kind = parent.get_type_name()
        if kind not in _FUSIBLE or self.attributes.get(parent, DisableCleanup):
            return None
        if not self.params.update_precisions and _has_types(parent):
            return None
        if kind == "Convert":
            source = parent.input_value(0)
            if isinstance(source.get_node(), Constant) or not self._reads(precision_of(source)):
                return None
            return (source, low, high) if precision_of(parent.output(0)) in REAL else None
        if kind == "Add" and self.attributes.get(parent, Bias):
            return None
        if (port := self._constant_port(parent)) is None:
            return None
        if self._stays(parent, below):
            return None
        values = constant_above(parent.input_value(port)).astype(np.float32, copy=False)
        if kind == "Multiply":
            if (values <= 0).any():
                return None
            with np.errstate(over="ignore"):
                low, high = low / values, high / values
            if not (np.isfinite(low).all() and np.isfinite(high).all()):
                return None
        elif kind == "Subtract":
            if port == 0:
                return None  # c - x turns the order of values round
            low, high = low + values, high + values
        else:
            low, high = low - values, high - values
        return parent.input_value(1 - port), low, high

    def _reads(self, source: str) -> bool:
        """Whether kernels take such data: others the plugin converts twice, to i32 and to floats, in layers of their own."""
        return source in (*INT8, *REAL)

    def _is_constant(self, value: Output) -> bool:
        """Whether a value is one, also where it is stored as integers, as the zero points of ONNX files are."""
        return is_constant_above(value)

    def _stays(self, link: Node, below: Node) -> bool:
        """Whether others than FakeQuantizes, and ``below``, which they take in, need the scale or bias of a layer.

        The two are then part of its kernel: with an interval divided or shifted by them, the layer would give raw sums, and
        each be a layer of its own.
        """
        taken = below.get_instance_id()
        others = (reader for reader in readers_of(link) if reader.get_instance_id() != taken)
        if all(reader.get_type_name() == "FakeQuantize" for reader in others):
            return False
        source = link
        while source.get_type_name() in AFFINE and (port := self._constant_port(source)) is not None:
            source = source.input_value(1 - port).get_node()
        return source.get_type_name() in WEIGHTED

    def _constant_port(self, parent: Node) -> int | None:
        """The port of a constant that varies along the first two of its axes at most and does not broadcast the data.

        One that varies comes second, as the native library has it.
        """
        for port in (0, 1):
            if not self._is_constant(parent.input_value(port)):
                continue
            sizes = shape_of(parent.input_value(port))
            if all(size == 1 for size in sizes):
                return port
            shapes = {
                shape_of(value) for value in (parent.input_value(0), parent.input_value(1 - port), parent.output(0))
            }
            if len(shapes) > 1 or None in shapes:
                return None
            if any(size != 1 for size in sizes[_varying_axes(sizes, *shapes) :]):
                return None
            return port
        return None


def _varying_axes(sizes: Sequence[int | None], data: Sequence[int | None]) -> int:
    """Along how many of its first axes a constant may vary: those that stand for the first two of the data."""
    return max(2 - (len(data) - len(sizes)), 0)


def _has_types(node: Node) -> bool:
    """Whether it reads and gives values of more than one."""
    return len({precision_of(value) for value in (*node.input_values(), *node.outputs())}) > 1
