from __future__ import annotations

import numpy as np

from ovlpt.attributes import Precisions
from ovlpt.cleanup.cleanup_transformation import CleanupTransformation
from ovlpt.config import PrecisionsRestriction
from ovlpt.graph.constants import constant, is_constant_path, precision_of, values_of
from ovlpt.graph.dequantization import Dequantization
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.relaxed import relaxed
from ovlpt.layer_transformation import replace_output, shape_of
from ovlpt.openvino_api import Constant, Node, opset1
from ovlpt.trace import reject, reject_unless


class MultiplyToGroupConvolutionTransformation(CleanupTransformation):
    """``(x - z) * s == (depthwise(x, 1) - z) * s``: some plugins fuse elementwise chains better after a convolution.

    ``restrictions``: those of LowPrecision; the ones of GroupConvolution name the element types.
    """

    def __init__(self, *args, restrictions: tuple[PrecisionsRestriction, ...] = (), **settings):
        super().__init__(*args, **settings)
        self.restrictions = [restriction for restriction in restrictions if restriction.operation == "GroupConvolution"]

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Multiply"]

    def can_be_transformed(self, node: Node) -> None:
        port = self._constant_port(node)
        reject_unless(port is not None, "not_constant", "no input is a constant")
        shape, data = shape_of(node.output(0)), shape_of(node.input_value(0))
        reject_unless(shape is not None and len(shape) in (4, 5), "rank", "its rank is not 4 or 5")
        reject_unless(
            shape[1] is not None and data and len(data) > 1 and data[1] is not None,
            "dynamic_shape",
            "the number of channels is not known",
        )
        values = values_of(node.input_value(port).get_node())
        reject_unless(
            all(size == 1 for size in values.shape[2:]),
            "not_per_channel",
            "the constant varies along an axis other than that of the channels",
        )
        source, found = node.input_value(1 - port).get_node(), self.dequantization(node, 1 - port)
        reject_unless(not self._is_constant(source), "constant_data", "the data is constant")
        self._check_product(source, found)
        allowed = self._allowed(node, 0)
        if self.params.update_precisions and allowed is not None:
            precision = found.data_precision
            reject_unless(precision in allowed, "activation_precision", f"the data is {precision}")

    def _check_product(self, source: Node, found: Dequantization) -> None:
        reject_unless(found.multiply is None, "product", "the data has a scale of its own")

    def _is_constant(self, source: Node) -> bool:
        """Weights of a layer in float among them, whose integers a Convert reads: no kernel computes a layer of constants."""
        return is_constant_path(source)

    @staticmethod
    def _constant_port(node: Node) -> int | None:
        return next((port for port in (1, 0) if isinstance(node.input_value(port).get_node(), Constant)), None)

    def _allowed(self, node: Node, group: int) -> tuple[str, ...] | None:
        """The types of the given port of GroupConvolution; None: not restricted."""
        for restriction in self.restrictions:
            for ports, precisions in restriction.of(node):
                if group in ports:
                    return precisions
        return None

    def transform(self, node: Node) -> None:
        port = self._constant_port(node)
        found = self.dequantization(node, 1 - port)
        shape, name = shape_of(node.output(0)), node.get_friendly_name()
        spatial = len(shape) - 2
        ones = constant(
            np.ones((shape[1], 1, 1, *(1,) * spatial)),
            self._weights_precision(node, port, found.data_precision),
        )
        attributes = {
            "strides": [1] * spatial,
            "pads_begin": [0] * spatial,
            "pads_end": [0] * spatial,
            "dilations": [1] * spatial,
        }
        last = relaxed("GroupConvolution", [found.data, ones.output(0)], "f32", attributes | {"auto_pad": "explicit"})
        last.set_friendly_name(made_for(name, Made.GROUP_CONVOLUTION))
        if found.zero_point is not None:
            last = opset1.add(last, constant(-found.zero_point))
            last.set_friendly_name(made_for(made_for(name, Made.GROUP_CONVOLUTION), "Add"))
        original, scale = precision_of(node.output(0)), node.input_value(port)
        if original == precision_of(scale) == "f32":
            product = opset1.multiply(last, scale)
        else:
            product = relaxed("Multiply", [last.output(0), scale], original, {"auto_broadcast": "numpy"})
        product.set_friendly_name(name)
        self.attributes.move(node, product)
        replace_output(node.output(0), product.output(0))

    def _weights_precision(self, node: Node, port: int, data_precision: str) -> str:
        if not self.params.update_precisions:
            return data_precision
        if allowed := self._allowed(node, 1):
            return allowed[0]
        required = self.attributes.get(node.input(port), Precisions)
        precisions = required.value if required is not None else self.params.default_precisions
        return precisions[0] if precisions else reject("weights_precision", "no precision is allowed for the weights")
