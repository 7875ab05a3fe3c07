"""What a plugin does to any model before its own LPT, from Python.

Most of it is OpenVINO's MOC transformations. They fold constants, and would fold quantized weights into floats; so the
stored integers are handed to them as inputs, which nothing folds, and put back behind.
"""

from __future__ import annotations

import numpy as np
from openvino._offline_transformations import apply_moc_transformations

from ovlpt.graph.constants import constant, precision_of
from ovlpt.layer_transformation import ModelTransformation, replace_output, shape_of
from ovlpt.openvino_api import Constant, Model, Node, Output, opset1, opset4, opset8
from ovlpt.precisions import INT4, INT8


class CommonOptimizations(ModelTransformation):
    """MOC transformations with the quantized weights kept, then the operation versions that LPT has rules for."""

    def run_on_model(self, model: Model) -> bool:
        model = Model(model)
        pinned = _pin_quantized_constants(model)
        apply_moc_transformations(model, True)
        for parameter, stored in pinned:
            for target in parameter.output(0).get_target_inputs():
                target.replace_source_output(stored.output(0))
            model.remove_parameter(parameter)
        for node in model.get_ordered_ops():
            convert = _CONVERSIONS.get((node.get_type_name(), node.get_type_info().version_id))
            new = convert(node) if convert else None
            if new is not None:
                new.set_friendly_name(node.get_friendly_name())
                replace_output(node.output(0), new.output(0))
        model.validate_nodes_and_infer_types()
        return True


def _pin_quantized_constants(model: Model) -> list[tuple[Node, Node]]:
    """Replace integer constants that start a dequantization by Parameters."""
    pinned = []
    for node in model.get_ops():
        if not isinstance(node, Constant) or precision_of(node.output(0)) not in (*INT8, *INT4):
            continue
        targets = list(node.output(0).get_target_inputs())
        if targets and all(target.get_node().get_type_name() == "Convert" for target in targets):
            parameter = opset1.parameter(node.get_output_shape(0), node.get_output_element_type(0))
            for target in targets:
                target.replace_source_output(parameter.output(0))
            pinned.append((parameter, node))
    model.add_parameters([parameter for parameter, _ in pinned])
    return pinned


def _window(attributes: dict) -> dict:
    return {
        "strides": attributes["strides"],
        "pads_begin": attributes["pads_begin"],
        "pads_end": attributes["pads_end"],
        "kernel_shape": attributes["kernel"],
        "rounding_type": attributes["rounding_type"],
        "auto_pad": attributes["auto_pad"],
    }


def _max_pool(node: Node) -> Node | None:
    attributes = node.get_attributes()
    plain = all(dilation == 1 for dilation in attributes["dilations"]) and attributes["rounding_type"] != "ceil_torch"
    if not plain or node.output(1).get_target_inputs():
        return None
    return opset1.max_pool(node.input_value(0), **_window(attributes))


def _avg_pool(node: Node) -> Node | None:
    attributes = node.get_attributes()
    if attributes["rounding_type"] == "ceil_torch":
        return None
    return opset1.avg_pool(node.input_value(0), exclude_pad=attributes["exclude-pad"], **_window(attributes))


def _interpolate(node: Node) -> Node | None:
    """Interpolate-11 takes sizes or scales, Interpolate-4 both."""
    attributes = node.get_attributes()
    data, target = node.input_value(0), node.input_value(1)
    if attributes["mode"] not in ("nearest", "linear", "linear_onnx", "cubic"):
        return None
    if node.get_input_size() > 2:
        axes = node.input_value(2)
        axes_values = axes.get_node().data if isinstance(axes.get_node(), Constant) else None
    else:
        rank = data.get_partial_shape().rank
        axes_values = np.arange(rank.get_length()) if rank.is_static else None
        axes = constant(axes_values, "i64").output(0) if axes_values is not None else None
    before, after = shape_of(data), shape_of(node.output(0))
    if axes_values is None or before is None or after is None:
        return None
    if attributes["shape_calculation_mode"] == "sizes":
        if any(before[axis] is None or after[axis] is None for axis in axes_values):
            return None
        sizes = target
        scales = constant(np.array([after[axis] / before[axis] for axis in axes_values], np.float32)).output(0)
    else:
        if any(after[axis] is None for axis in axes_values):
            return None
        sizes = constant(np.array([after[axis] for axis in axes_values]), "i64").output(0)
        scales = target
    names = ("mode", "shape_calculation_mode", "coordinate_transformation_mode", "nearest_mode", "antialias", "cube_coeff")
    kept = {name: attributes[name] for name in names}
    return opset4.interpolate(
        data, sizes, scales, axes=axes, pads_begin=attributes["pads_begin"], pads_end=attributes["pads_end"], **kept
    )


def _scaled_dot_product_attention(node: Node) -> Node | None:
    """``softmax(q @ (k.T * scale) + mask) @ v``, so that the products can run in low precision."""
    if node.get_attributes()["causal"]:
        return None
    query, key, value = (node.input_value(port) for port in range(3))
    shape = shape_of(key)
    if shape is None or shape[-1] is None or precision_of(query) == "boolean":
        return None
    scale = node.input_value(4) if node.get_input_size() > 4 else constant(np.float32(1 / np.sqrt(shape[-1])), precision_of(query)).output(0)
    mask = node.input_value(3) if node.get_input_size() > 3 else None
    if mask is not None and precision_of(mask) != precision_of(query):
        return None
    key = _last_axes_swapped(key, len(shape))
    if not _is(scale, 1.0):
        key = opset1.multiply(key, scale).output(0)
    scores = opset1.matmul(query, key, False, False)
    if mask is not None and not _is(mask, 0.0):
        scores = opset1.add(scores, mask)
    return opset1.matmul(opset8.softmax(scores, axis=-1), value, False, False)


def _last_axes_swapped(value: Output, rank: int) -> Output:
    """A Transpose that is there already takes the swap in."""
    order = [*range(rank - 2), rank - 1, rank - 2]
    node = value.get_node()
    if node.get_type_name() == "Transpose" and isinstance(node.input_value(1).get_node(), Constant):
        inner = node.input_value(1).get_node().data
        value, order = node.input_value(0), [int(inner[axis]) for axis in order]
    return opset1.transpose(value, constant(np.array(order), "i32")).output(0)


def _is(value: Output, number: float) -> bool:
    node = value.get_node()
    return isinstance(node, Constant) and node.data.size == 1 and float(node.data.reshape(-1)[0]) == number


_CONVERSIONS = {
    ("MaxPool", "opset8"): _max_pool,
    ("MaxPool", "opset14"): _max_pool,
    ("AvgPool", "opset14"): _avg_pool,
    ("Interpolate", "opset11"): _interpolate,
    ("ScaledDotProductAttention", "opset13"): _scaled_dot_product_attention,
}
