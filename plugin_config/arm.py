"""ARM CPUs (AArch64). Source: the CPU plugin's transformation pipeline."""

from __future__ import annotations

from ovlpt.config import PluginConfig, PrecisionsRestriction, QuantizationGranularityRestriction
from ovlpt.graph.constants import constant_above, is_constant_path, precision_of
from ovlpt.openvino_api import Node
from ovlpt.precisions import INT8
from ovlpt.predicates import marked_as_bias

DISABLED = (
    "AvgPoolTransformation",
    "ConvolutionBackpropDataTransformation",
    "GroupConvolutionBackpropDataTransformation",
    "GroupConvolutionTransformation",
    "InterpolateTransformation",
    "MVNTransformation",
    "MaxPoolTransformation",
    "MultiplyToGroupConvolutionTransformation",
    "NormalizeL2Transformation",
    "RecurrentCellTransformation",
    "ReduceMaxTransformation",
    "ReduceMeanTransformation",
    "ReduceMinTransformation",
    "ReduceSumTransformation",
)


def config(convolutions: bool = True) -> PluginConfig:
    """The configuration for an ARM CPU. ``convolutions``: the plugin has int8 convolutions (2026 and later)."""
    if not convolutions:
        return PluginConfig(
            "ARM CPU without int8 convolutions",
            precision_restrictions=(PrecisionsRestriction.create("MatMul", {(0, 1): ["i8"]}),),
            disabled=("ConvolutionTransformation", *DISABLED),
            callbacks={"AddTransformation": marked_as_bias, "MatMulTransformation": is_no_fully_connected},
        )
    return PluginConfig(
        "ARM CPU",
        precision_restrictions=(
            PrecisionsRestriction.create("Convolution", {(0, 1): ["u8", "i8"]}),
            PrecisionsRestriction.create("MatMul", {0: ["u8", "i8"], 1: ["i8"]}),
        ),
        quantization_restrictions=(QuantizationGranularityRestriction.create("Convolution", [0]),),
        disabled=DISABLED,
        callbacks={
            "AddTransformation": marked_as_bias,
            "ConvolutionTransformation": is_small_convolution,
            "FakeQuantizeTransformation": is_requantization,
            "FuseMultiplyToFakeQuantizeTransformation": stands_after_requantization,
            "FuseSubtractToFakeQuantizeTransformation": stands_after_requantization,
            "MatMulTransformation": is_no_fully_connected,
        },
    )


def is_no_fully_connected(node: Node) -> bool:
    """Whether a MatMul has no constant weights of rank 2 or 3: its int8 kernel is then not faster than f16."""
    weights = node.input_value(1)
    return not is_constant_path(weights.get_node()) or len(weights.get_partial_shape()) not in (2, 3)


def is_small_convolution(node: Node) -> bool:
    """Whether a 3x3 convolution of stride 1 has fewer than 512 input or output channels: Winograd in float is faster."""
    shape = node.input_value(1).get_partial_shape()
    if node.get_type_name() != "Convolution" or list(node.get_attributes()["strides"]) != [1, 1] or shape.is_dynamic:
        return False
    outputs, inputs, *kernel = shape.to_shape()
    return kernel == [3, 3] and min(outputs, inputs) < 512


def is_requantization(node: Node) -> bool:
    """Whether a FakeQuantize gives the type of the data of the convolution before it, whose scale and bias stand between.

    The plugin makes one layer of the four; so the scale must not become part of the FakeQuantize.
    """
    chain = _scale_and_bias_above(node)
    return chain is not None and precision_of(chain.input_value(0)) == precision_of(node.output(0))


def stands_after_requantization(node: Node) -> bool:
    """Whether a Multiply or Subtract reads the integers of such a FakeQuantize."""
    source = node.input_value(0).get_node()
    return (
        source.get_type_name() == "FakeQuantize"
        and precision_of(source.output(0)) in INT8
        and _scale_and_bias_above(source, needs_bias=True) is not None
        and is_requantization(source)
    )


def _scale_and_bias_above(quantize: Node, needs_bias: bool = False) -> Node | None:
    """The convolution of ``FakeQuantize(Convolution * scale + bias)``, the bias may be absent."""
    node = quantize.input_value(0).get_node()
    if node.get_type_name() == "Add" and constant_above(node.input_value(1)) is not None:
        node = node.input_value(0).get_node()
    elif needs_bias:
        return None
    if node.get_type_name() != "Multiply" or constant_above(node.input_value(1)) is None:
        return None
    node = node.input_value(0).get_node()
    return node if node.get_type_name() == "Convolution" else None
