from __future__ import annotations

import numpy as np

from ovlpt.graph.constants import constant_above, kept_apart
from ovlpt.graph.names import Made, made_for
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import LayerTransformation
from ovlpt.openvino_api import Node
from ovlpt.trace import Reason


class FactorsBeforeKernels(LayerTransformation):
    """A factor by row or column of a convolution's data, of as many rows and columns as its kernel has, apart from the layer.

    OpenVINO moves any factor that fits into the weights: that of a row would be that of all that a row of the kernel reads.
    """

    quiet = True
    why = Reason(
        "factor_by_position", "what its data is multiplied with by row or column would be moved into its weights"
    )

    @classmethod
    def type_names(cls) -> list[str]:
        return ["opset1.Convolution", "opset1.GroupConvolution"]

    def concerns(self, node: Node) -> bool:
        return takes_factor_by_position(node)

    def transform(self, node: Node) -> None:
        part_from_factor(node)


def takes_factor_by_position(convolution: Node) -> bool:
    """Whether OpenVINO would move into the weights what differs between the rows or columns of the data."""
    product = convolution.input_value(0).get_node()
    kernel = shape_of(convolution.input_value(1))
    if product.get_type_name() not in ("Multiply", "Divide") or kernel is None:
        return False
    space = len(convolution.get_attributes()["strides"])
    for value in product.input_values():
        factor = constant_above(value)
        extents = () if factor is None else factor.shape[-space:]
        kernel_extents = kernel[len(kernel) - len(extents) :]
        fits = all(size in (1, taps) for size, taps in zip(extents, kernel_extents, strict=True))
        if extents and fits and np.ptp(factor, axis=tuple(range(-len(extents), 0))).any():
            return True
    return False


def part_from_factor(convolution: Node) -> None:
    """A maximum between the factor and the convolution."""
    product = convolution.input_value(0)
    apart = kept_apart(product)
    apart.set_friendly_name(made_for(product.get_node().get_friendly_name(), Made.ALONE))
    convolution.input(0).replace_source_output(apart.output(0))
