"""A model run in numpy (float64), operation by operation, after the operation specifications: the tests'
reference.
"""

from __future__ import annotations

import math
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
    "Tanh": np.tanh,
    "Sigmoid": lambda x: _sigmoid(x),
    "HSwish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "Elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "Swish": lambda x: x * _sigmoid(x),
    "Gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
}
_BINARY = {
    "Add": np.add,
    "Subtract": np.subtract,
    "Multiply": np.multiply,
    "Divide": np.divide,
    "Power": np.power,
    "Maximum": np.maximum,
    "Greater": np.greater,
}


def run(model: Model, inputs: Mapping[str, np.ndarray], levels_in: type = np.float32) -> list[np.ndarray]:
    """The outputs of the model; ``inputs`` by friendly name of the Parameter.

    ``levels_in``: what a FakeQuantize rounds in. Plugins do it in f32, which decides where a value lies between two levels.
    """
    values: dict[tuple[int, int], np.ndarray] = {}
    for node in model.get_ordered_ops():
        if node.get_type_name() == "Parameter":
            outputs = [np.asarray(inputs[node.get_friendly_name()])]
        else:
            arguments = [values[v.get_node().get_instance_id(), v.get_index()] for v in node.input_values()]
            outputs = _outputs(node, arguments, levels_in)
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


def _outputs(node: Node, arguments: list[np.ndarray], levels_in: type) -> list[np.ndarray]:  # noqa: C901, one branch for each operation
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
            kind = node.get_output_element_type(0).to_dtype().kind
            return [arguments[0].astype(np.float64 if kind == "f" else np.int64)]
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
        case "ReduceMean" | "ReduceSum":
            reduce = np.mean if kind == "ReduceMean" else np.sum
            return [reduce(arguments[0], tuple(np.ravel(arguments[1])), keepdims=attributes["keep_dims"])]
        case "MaxPool" | "AvgPool":
            return [_pooled(arguments[0], node)]
        case "PRelu":
            slope = arguments[1].reshape(-1, *[1] * (arguments[0].ndim - 2))
            return [np.where(arguments[0] > 0, arguments[0], arguments[0] * slope)]
        case "Softmax":
            return [_softmax(arguments[0], attributes["axis"])]
        case "ScaledDotProductAttention":
            return [_attention(*arguments, causal=attributes["causal"])]
        case "Pad":
            value = arguments[3] if len(arguments) > 3 else 0
            return [np.pad(arguments[0], list(zip(*arguments[1:3], strict=True)), constant_values=value)]
        case "ShuffleChannels":
            x, groups = arguments[0], attributes["group"]
            parted = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
            return [parted.swapaxes(1, 2).reshape(x.shape)]
        case "Interpolate":
            return [_enlarged(arguments[0], node.get_output_shape(0))]
        case "Transpose":
            return [np.transpose(arguments[0], arguments[1])]
        case "Reshape" | "Squeeze" | "Unsqueeze":
            return [arguments[0].reshape(node.get_output_shape(0))]
        case "Clamp":
            return [np.clip(arguments[0], attributes["min"], attributes["max"])]
        case "FakeQuantize":
            return [_fake_quantize(*(a.astype(levels_in) for a in arguments), levels_in(attributes["levels"]))]
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
            return _if(node, arguments, levels_in)
        case "Loop":
            return _loop(node, arguments, levels_in)
        case "RNNCell" | "GRUCell":
            data, state, *weights = arguments
            step = _rnn_step if kind == "RNNCell" else _gru_step
            return step(data, [state], *weights)
        case "LSTMSequence" | "GRUSequence":
            return _sequence(kind, attributes, arguments)
    raise NotImplementedError(kind)


def _if(node: Node, arguments: list[np.ndarray], levels_in: type) -> list[np.ndarray]:
    branch = 0 if arguments[0].all() else 1
    body = node.get_function(branch)
    parameters = body.get_parameters()
    inputs = {
        parameters[d.body_parameter_index].get_friendly_name(): arguments[d.input_index]
        for d in node.get_input_descriptions(branch)
    }
    results = run(body, inputs, levels_in)
    outputs: list = [None] * len(node.outputs())
    for description in node.get_output_descriptions(branch):
        outputs[description.output_index] = results[description.body_value_index]
    return outputs


def _loop(node: Node, arguments: list[np.ndarray], levels_in: type) -> list[np.ndarray]:
    """With a number of rounds that is given, whose body has the same condition throughout, and the last value of each result."""
    body, inputs = node.get_function(), {}
    parameters = body.get_parameters()
    fed = {}
    for description in node.get_input_descriptions():
        inputs[parameters[description.body_parameter_index].get_friendly_name()] = arguments[description.input_index]
        if hasattr(description, "body_value_index"):
            fed[parameters[description.body_parameter_index].get_friendly_name()] = description.body_value_index
    for _ in range(int(arguments[0])):
        results = run(body, inputs, levels_in)
        inputs |= {name: results[index] for name, index in fed.items()}
    outputs: list = [None] * len(node.outputs())
    for description in node.get_output_descriptions():
        outputs[description.output_index] = results[description.body_value_index]
    return outputs


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def _attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, mask=0.0, causal=False) -> np.ndarray:
    if causal:
        mask = np.where(np.tri(query.shape[-2], key.shape[-2]), 0.0, -np.inf)
    return _softmax(query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1]) + mask, -1) @ value


def _pooled(x: np.ndarray, node: Node) -> np.ndarray:
    """A size that is rounded up needs more padding at the end."""
    attributes, axes = node.get_attributes(), tuple(range(2, x.ndim))
    if any(each != 1 for each in attributes.get("dilations", ())):
        raise NotImplementedError("dilations of a pool")
    kernel, strides, begin = attributes["kernel"], attributes["strides"], attributes["pads_begin"]
    sizes = zip(node.get_output_shape(0)[2:], strides, kernel, begin, x.shape[2:], strict=True)
    ends = [max((count - 1) * stride + window - before - size, 0) for count, stride, window, before, size in sizes]
    if any(begin) or any(ends):
        edge = _EDGE[node.get_type_name()]
        x = np.pad(x, [(0, 0), (0, 0), *zip(begin, ends, strict=True)], constant_values=edge)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axes)
    places = tuple(slice(None, None, stride) for stride in strides)
    reduce = np.max if node.get_type_name() == "MaxPool" else np.mean
    return reduce(windows[(slice(None), slice(None), *places)], tuple(range(x.ndim, 2 * x.ndim - 2)))


_EDGE = {"MaxPool": -np.inf, "AvgPool": np.nan}  # the mean of a window with padding is not computed here


def _enlarged(x: np.ndarray, shape: list[int]) -> np.ndarray:
    """To a multiple of its size, each element repeated."""
    for axis, size in enumerate(shape):
        if size % x.shape[axis]:
            raise NotImplementedError("Interpolate")
        x = x.repeat(size // x.shape[axis], axis)
    return x


def _sequence(kind: str, attributes: dict, arguments: list[np.ndarray]) -> list[np.ndarray]:
    """Of full length, with the operation's own activations."""
    is_lstm = kind == "LSTMSequence"
    x, *states = arguments[: 3 if is_lstm else 2]
    weights, ends, steps = arguments[-3:], [], []
    for direction in range(weights[0].shape[0]):
        backward = attributes["direction"] == "reverse" or direction == 1
        w, r, b = (each[direction] for each in weights)
        state, found = [each[:, direction] for each in states], []
        for step in range(x.shape[1])[:: -1 if backward else 1]:
            state = (_lstm_step if is_lstm else _gru_step)(x[:, step], state, w, r, b)
            found.append(state[0])
        steps.append(np.stack(found[:: -1 if backward else 1], 1))
        ends.append(state)
    return [np.stack(steps, 1), *(np.stack([end[port] for end in ends], 1) for port in range(len(states)))]


def _lstm_step(x, state, w, r, b) -> list[np.ndarray]:
    hidden, cell = state
    forget, let_in, candidate, out = np.split(x @ w.T + hidden @ r.T + b, 4, 1)
    cell = _sigmoid(forget) * cell + _sigmoid(let_in) * np.tanh(candidate)
    return [_sigmoid(out) * np.tanh(cell), cell]


def _rnn_step(x, state, w, r, b) -> list[np.ndarray]:
    return [np.tanh(x @ w.T + state[0] @ r.T + b)]


def _gru_step(x, state, w, r, b) -> list[np.ndarray]:
    """Linear before the reset where there are four biases."""
    (hidden,), size = state, state[0].shape[1]
    update, reset = np.split(_sigmoid(x @ w[: 2 * size].T + hidden @ r[: 2 * size].T + b[: 2 * size]), 2, 1)
    r_new, linear_first = r[2 * size :].T, b.size == 4 * size
    inner = reset * (hidden @ r_new + b[3 * size :]) if linear_first else (reset * hidden) @ r_new
    candidate = np.tanh(x @ w[2 * size :].T + inner + b[2 * size : 3 * size])
    return [update * hidden + (1 - update) * candidate]


def _fake_quantize(x, il, ih, ol, oh, levels):
    with np.errstate(divide="ignore", invalid="ignore"):  # of an interval without a width nothing is inside
        inside = np.rint((x - il) / (ih - il) * (levels - 1)) / (levels - 1) * (oh - ol) + ol
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
    if node.get_input_size() > 2:
        raise NotImplementedError("the output shape of a transposed convolution")
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
