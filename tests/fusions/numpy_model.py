"""A model run in numpy (float64), operation by operation, after the operation specifications: the tests'
reference.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ovlpt.openvino_api import Constant, Core, Model, Node

_UNARY = {
    "Relu": lambda x: np.maximum(x, 0),
    "Sqrt": np.sqrt,
    "Negative": np.negative,
    "Result": lambda x: x,
    "LogicalNot": np.logical_not,
    "ReadValue": lambda x: x,
}
_BINARY = {
    "Add": np.add,
    "Subtract": np.subtract,
    "Multiply": np.multiply,
    "Divide": np.divide,
    "Power": np.power,
}


def run(model: Model, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of the model; ``inputs`` by friendly name of the Parameter."""
    values: dict[tuple[int, int], np.ndarray] = {}
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Parameter":
            outputs = [np.asarray(inputs[node.get_friendly_name()])]
        else:
            arguments = [values[v.get_node().get_instance_id(), v.get_index()] for v in node.input_values()]
            outputs = _outputs(node, arguments)
        for index, output in enumerate(outputs):
            values[node.get_instance_id(), index] = output
    return [
        values[r.input_value(0).get_node().get_instance_id(), r.input_value(0).get_index()] for r in model.get_results()
    ]


def run_on_plugin(model: Model, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of the CPU plugin in f32, with all of its own optimizations."""
    compiled = Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    feed = [np.asarray(inputs[parameter.get_friendly_name()]) for parameter in model.get_parameters()]
    results = compiled.create_infer_request().infer(dict(enumerate(feed)))
    return [results[index] for index in range(len(model.get_results()))]


def _outputs(node: Node, arguments: list[np.ndarray]) -> list[np.ndarray]:  # noqa: C901, one branch for each operation
    kind, attributes = node.get_type_name(), node.get_attributes()
    if isinstance(node, Constant):
        data = node.data
        return [data.astype(np.float64) if data.dtype.kind == "f" else data]
    if kind in _UNARY:
        return [_UNARY[kind](arguments[0])]
    if kind in _BINARY:
        return [_BINARY[kind](*arguments)]
    match kind:
        case "Convert":
            return [arguments[0].astype(np.float64)]
        case "ConvertLike":
            return [arguments[0]]
        case "Assign":
            return [arguments[0]]
        case "Convolution":
            return [_convolution(arguments[0], arguments[1][None], node)]
        case "GroupConvolution":
            return [_convolution(*arguments, node)]
        case "ConvolutionBackpropData":
            return [_transposed(arguments[0], arguments[1][None], node)]
        case "GroupConvolutionBackpropData":
            return [_transposed(*arguments[:2], node)]
        case "MatMul":
            a, b = arguments
            a = np.swapaxes(a, -1, -2) if attributes["transpose_a"] else a
            return [a @ (np.swapaxes(b, -1, -2) if attributes["transpose_b"] else b)]
        case "BatchNormInference":
            if node.get_type_info().version_id == "opset1":
                gamma, beta, x, mean, variance = arguments
            else:
                x, gamma, beta, mean, variance = arguments
            gamma, beta, mean, variance = (v.reshape(-1, *[1] * (x.ndim - 2)) for v in (gamma, beta, mean, variance))
            return [gamma * (x - mean) / np.sqrt(variance + attributes["epsilon"]) + beta]
        case "MVN":
            x, axes = arguments[0], tuple(np.ravel(arguments[1]))
            centred = x - x.mean(axes, keepdims=True)
            return [centred / np.sqrt((centred**2).mean(axes, keepdims=True) + attributes["eps"])]
        case "ReduceMean":
            return [arguments[0].mean(tuple(np.ravel(arguments[1])), keepdims=attributes["keep_dims"])]
        case "Transpose":
            return [np.transpose(arguments[0], arguments[1])]
        case "Reshape" | "Squeeze" | "Unsqueeze":
            return [arguments[0].reshape(node.get_output_shape(0))]
        case "Clamp":
            return [np.clip(arguments[0], attributes["min"], attributes["max"])]
        case "FakeQuantize":
            return [_fake_quantize(*(a.astype(np.float32) for a in arguments), attributes["levels"])]
        case "Concat":
            return [np.concatenate(arguments, attributes["axis"])]
        case "Split":
            return np.split(arguments[0], len(node.outputs()), int(arguments[1]))
        case "VariadicSplit":
            x, axis, lengths = arguments[0], int(arguments[1]), arguments[2].astype(np.int64)
            lengths = np.where(lengths < 0, x.shape[axis] - lengths[lengths >= 0].sum(), lengths)
            return np.split(x, np.cumsum(lengths)[:-1], axis)
        case "StridedSlice":
            masks = [[*attributes[name], *[0] * 8] for name in ("begin_mask", "end_mask")]
            cuts = (
                slice(None if masks[0][i] else b, None if masks[1][i] else e, s)
                for i, (b, e, s) in enumerate(zip(*(a.tolist() for a in arguments[1:]), strict=True))
            )
            return [arguments[0][tuple(cuts)]]
        case "Slice":
            cuts = [slice(None)] * arguments[0].ndim
            for b, e, s, axis in zip(*(np.ravel(a).tolist() for a in arguments[1:]), strict=True):
                cuts[axis] = slice(b, e, s)
            return [arguments[0][tuple(cuts)]]
        case "Gather":
            return [np.take(arguments[0], arguments[1], int(arguments[2]))]
        case "If":
            return _if(node, arguments)
    raise NotImplementedError(kind)


def _if(node: Node, arguments: list[np.ndarray]) -> list[np.ndarray]:
    branch = 0 if arguments[0].all() else 1
    body = node.get_function(branch)
    parameters = body.get_parameters()
    inputs = {
        parameters[d.body_parameter_index].get_friendly_name(): arguments[d.input_index]
        for d in node.get_input_descriptions(branch)
    }
    results = run(body, inputs)
    outputs: list = [None] * len(node.outputs())
    for description in node.get_output_descriptions(branch):
        outputs[description.output_index] = results[description.body_value_index]
    return outputs


def _fake_quantize(x, il, ih, ol, oh, levels):
    steps = np.float32(levels - 1)
    inside = np.rint((x - il) / (ih - il) * steps) / steps * (oh - ol) + ol
    return np.where(x <= np.minimum(il, ih), ol, np.where(x > np.maximum(il, ih), oh, inside)).astype(np.float64)


def _pads(node: Node, spatial, kernel, strides, dilations) -> list[tuple[int, int]]:
    attributes = node.get_attributes()
    if attributes["auto_pad"] in ("explicit", "notset"):
        return list(zip(attributes["pads_begin"], attributes["pads_end"], strict=True))
    if attributes["auto_pad"] == "valid":
        return [(0, 0)] * len(spatial)
    pads = []
    for size, k, s, d in zip(spatial, kernel, strides, dilations, strict=True):
        total = max((-(-size // s) - 1) * s + (k - 1) * d + 1 - size, 0)
        small, large = total // 2, total - total // 2
        pads.append((small, large) if attributes["auto_pad"] == "same_upper" else (large, small))
    return pads


def _convolution(x: np.ndarray, weights: np.ndarray, node: Node) -> np.ndarray:
    """``weights``: [groups, outputs, inputs, kernel…]."""
    attributes, kernel = node.get_attributes(), weights.shape[3:]
    strides, dilations = attributes["strides"], attributes["dilations"]
    pads = _pads(node, x.shape[2:], kernel, strides, dilations)
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    groups, outputs = weights.shape[:2]
    sizes = [
        (size - (k - 1) * d - 1) // s + 1 for size, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True)
    ]
    x = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    y = np.zeros((x.shape[0], groups, outputs, *sizes))
    for at in np.ndindex(*kernel):
        cut = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, s, n in zip(at, dilations, strides, sizes, strict=True)
        )
        y += np.einsum("ngc...,goc->ngo...", x[(slice(None), slice(None), slice(None), *cut)], weights[(..., *at)])
    return y.reshape(y.shape[0], groups * outputs, *sizes)


def _transposed(x: np.ndarray, weights: np.ndarray, node: Node) -> np.ndarray:
    """``weights``: [groups, inputs, outputs, kernel…]."""
    attributes, kernel = node.get_attributes(), weights.shape[3:]
    strides, dilations = attributes["strides"], attributes["dilations"]
    groups, outputs = weights.shape[0], weights.shape[2]
    full = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[2:], strides, kernel, dilations, strict=True)]
    y = np.zeros((x.shape[0], groups, outputs, *full))
    grouped = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    for at in np.ndindex(*kernel):
        cut = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, s, n in zip(at, dilations, strides, x.shape[2:], strict=True)
        )
        y[(slice(None), slice(None), slice(None), *cut)] += np.einsum(
            "ngc...,gco->ngo...", grouped, weights[(..., *at)]
        )
    y = y.reshape(y.shape[0], groups * outputs, *full)
    cut = tuple(slice(b, n - e) for b, e, n in zip(attributes["pads_begin"], attributes["pads_end"], full, strict=True))
    return y[(slice(None), slice(None), *cut)]
