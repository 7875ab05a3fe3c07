"""Small networks of the operations that common networks do not have, quantized by hand.

FakeQuantize stands where a careful hand would put it: before the operation and not again after it, so that the
dequantization has to move through. Each function draws one network; `SKETCHES` lists them.
"""

from __future__ import annotations

import numpy as np

from ovlpt.openvino_api import Node, Output, opset1
from tools.zoo.sketch import Draw, Sketch, Value, window

_IMAGE = (3, 32, 32)
_NEAREST = {"mode": "nearest", "antialias": False, "pads_begin": [0] * 4, "pads_end": [0] * 4}

_BY_SCALES = {
    "shape_calculation_mode": "scales", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor", "cube_coeff": -0.75,
}  # fmt: skip

# 2024.6 leaves auto_pad to chance where it is not given
_TRANSPOSED = {"dilations": [1, 1], "output_padding": [0, 0], "auto_pad": "explicit"}


def _stem(net: Sketch, channels: int = 16, dynamic: bool = False) -> Node:
    image = net.quantize(net.input("image", _IMAGE, dynamic))
    return net.relu(net.convolution(image, channels))


def dilated(net: Sketch) -> Value:
    """Dilated convolutions as TensorFlow writes them: SpaceToBatch, Convolution, BatchToSpace."""
    x, none = _stem(net), [0, 0, 0, 0]
    for rate in (2, 4):
        block = [1, 1, rate, rate]
        parts = net.op("opset2.SpaceToBatch", net.quantize(x), block, none, none)
        parts = net.quantize(net.relu(net.convolution(parts, 16)))
        x = net.relu(net.convolution(net.op("opset2.BatchToSpace", parts, block, none, none), 16))
    return net.convolution(net.quantize(x), 8, 1)


def super_resolution(net: Sketch) -> Value:
    """ESPCN-like: convolutions on the small image, channels to pixels (DepthToSpace), PRelu, Clamp at the end."""
    x = net.quantize(_stem(net))
    x = net.op(
        "opset1.DepthToSpace", net.quantize(net.convolution(x, 32), symmetric=True), mode="depth_first", block_size=2
    )
    x = net.op("opset1.PRelu", x, net.constant((8,), 0.1, 0.4))
    x = net.convolution(x, 12)
    pixels = net.op("opset1.DepthToSpace", net.quantize(x), mode="blocks_first", block_size=2)
    return net.op(
        "opset1.Clamp",
        net.convolution(net.quantize(net.op("opset1.Clamp", pixels, min=-1.5, max=1.5)), 3),
        min=-4.0,
        max=4.0,
    )


def face(net: Sketch) -> Value:
    """An embedding of faces: Pad, instance normalization (MVN-2), PRelu, ReduceMin, NormalizeL2."""
    x = net.op("opset1.Pad", net.quantize(_stem(net), symmetric=True), [0, 0, 1, 1], [0, 0, 1, 1], pad_mode="reflect")
    x = net.quantize(net.convolution(x, 16, stride=2, pad=0), symmetric=True)
    x = net.op("opset2.MVN", x, eps=1e-6, normalize_variance=True, across_channels=False)
    x = net.convolution(
        net.op("opset1.PRelu", net.quantize(x, symmetric=True), net.constant((16,), 0.05, 0.3)), 32, stride=2
    )
    x = net.quantize(net.relu(x))
    least = net.op("opset1.ReduceMin", net.pool("AvgPool", x, 4, stride=4), [2, 3], keep_dims=True)
    x = net.quantize(net.convolution(least, 32, 1), symmetric=True)
    return net.op("opset1.NormalizeL2", x, [1], eps=1e-6, eps_mode="add")


def upsampling(net: Sketch) -> Value:
    """A decoder: nearest Interpolate of both versions, and a transposed convolution."""
    x = net.quantize(net.relu(net.convolution(net.quantize(_stem(net)), 16, stride=2)))
    x = net.op("opset1.Interpolate", x, [32, 32], axes=[2, 3], **_NEAREST | {"align_corners": False})
    x = net.quantize(net.relu(net.convolution(x, 16, stride=2)))
    x = net.op(
        "opset4.Interpolate", x, [32, 32], np.array([2.0, 2.0], np.float32), [2, 3],
        **_NEAREST, shape_calculation_mode="sizes", coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        cube_coeff=-0.75,
    )  # fmt: skip
    x = net.quantize(net.relu(net.convolution(x, 16)))
    weights = net.weights((16, 8, 2, 2), (1,), fan_in=16)
    return net.op("opset1.ConvolutionBackpropData", x, weights, **window(stride=2), **_TRANSPOSED)


def gated(net: Sketch) -> Value:
    """Attention over channels and positions: ReduceMean, ReduceMax, ReduceSum, Broadcast of both versions, Multiply."""
    x = net.quantize(_stem(net))
    mean = net.op("opset1.ReduceMean", x, [2, 3], keep_dims=True)
    most = net.op("opset1.ReduceMax", x, [2, 3], keep_dims=True)
    channels = net.op("opset1.Add", net.convolution(net.quantize(mean), 16, 1), net.convolution(most, 16, 1))
    channels = net.quantize(net.op("opset1.Sigmoid", channels))
    whole = [1, 16, 32, 32]
    product = net.op("opset1.Multiply", x, net.op("opset3.Broadcast", channels, whole, mode="numpy"))
    positions = net.op("opset1.ReduceSum", net.quantize(product), [1], keep_dims=True)
    positions = net.quantize(net.convolution(net.quantize(positions), 1, 7))
    spread = net.op("opset1.Broadcast", positions, whole, [0, 1, 2, 3], mode="explicit")
    return net.op("opset1.Add", net.convolution(net.quantize(product), 8), net.convolution(spread, 8, 1))


def shuffled(net: Sketch) -> Value:
    """Grouped and split convolutions with ShuffleChannels, Split, VariadicSplit and Concat between them."""
    x = net.quantize(_stem(net))
    x = net.op("opset3.ShuffleChannels", x, axis=1, group=4)
    x = net.quantize(net.relu(_grouped(net, x, 4)))
    halves = net.op("opset1.Split", x, 1, num_splits=2)
    left = net.quantize(net.relu(net.convolution(halves.output(0), 8)))
    right = net.pool("MaxPool", halves.output(1), 3, stride=1, pad=1)
    x = net.op("opset1.Concat", left, right, axis=1)
    parts = net.op("opset1.VariadicSplit", x, 1, [4, 12])
    return net.op("opset1.Add", net.convolution(parts.output(0), 8), net.convolution(parts.output(1), 8))


def _grouped(net: Sketch, data: Value, groups: int) -> Node:
    channels = net.channels(data)
    weights = net.weights((groups, channels // groups, channels // groups, 3, 3), (0, 1))
    return net.op("opset1.GroupConvolution", data, weights, **window(pad=1), dilations=[1, 1])


def depthwise(net: Sketch) -> Value:
    """An interval for each channel, and what it passes in images of any size: MaxPool, Squeeze, Pad-12, GroupConvolution."""
    x = net.quantize(_stem(net, dynamic=True), per_channel=True)
    x = net.op("opset1.Unsqueeze", x, [2])
    x = net.op("opset1.MaxPool", x, strides=[1, 2, 2], pads_begin=[0, 0, 0], pads_end=[0, 0, 0], kernel=[1, 2, 2])
    x = net.op("opset12.Pad", net.op("opset1.Squeeze", x, [2]), [0, 0, 1, 1], [0, 0, 1, 1], pad_mode="edge")
    return net.convolution(net.relu(net.quantize(_grouped(net, x, 16), symmetric=True)), 8, 1)


def tokens(net: Sketch) -> Value:
    """Patches as tokens: Reshape, Transpose, Gather of three versions, Slice and StridedSlice, MVN-6, MatMul."""
    x = net.quantize(net.convolution(net.quantize(net.input("image", _IMAGE)), 24, 4, stride=4, pad=0))
    x = net.op("opset1.Transpose", net.op("opset1.Reshape", x, [0, 24, -1], special_zero=True), [0, 2, 1])
    halves = (
        net.op("opset8.Gather", x, np.arange(0, 64, 2), 1, batch_dims=0),
        net.op("opset7.Gather", x, np.arange(1, 64, 2), 1, batch_dims=0),
    )
    x = net.quantize(net.op("opset1.Add", net.linear(halves[0], 24), net.linear(halves[1], 24)), symmetric=True)
    x = net.quantize(net.op("opset6.MVN", x, [2], eps=1e-5, eps_mode="inside_sqrt", normalize_variance=True))
    first = net.op("opset8.Slice", x, [0], [16], [1], [1])
    last = net.op(
        "opset1.StridedSlice",
        x,
        [0, 16, 0],
        [0, 0, 0],
        [1, 1, 1],
        begin_mask=[1, 0, 1],
        end_mask=[1, 1, 1],
        new_axis_mask=[],
        shrink_axis_mask=[],
        ellipsis_mask=[],
    )
    picked = net.op("opset1.Gather", x, [3, 1, 2, 0], 1)
    scores = net.op(
        "opset1.MatMul", first, net.quantize(net.linear(last, 24), symmetric=True), transpose_a=False, transpose_b=True
    )
    return scores, net.linear(picked, 10)


def recurrent(net: Sketch) -> Value:
    """Sequences of sound: an LSTMSequence with a GRUSequence after it; data, states and weights are quantized."""
    size, length = 16, 12
    frames = net.quantize(net.input("frames", (length, size)))
    states = [net.quantize(net.input(f"state{index}", (1, size))) for index in range(2)]
    cell = net.input("cell", (1, size))

    def kernels(gates: int) -> list[Output]:
        return [net.weights((1, gates * size, size), (0,), fan_in=size) for _ in range(2)]

    settings = {"hidden_size": size, "direction": "forward", "clip": 0.0}
    functions = ["sigmoid", "tanh", "tanh"]
    lstm = net.op(
        "opset5.LSTMSequence",
        frames,
        states[0],
        cell,
        [length],
        *kernels(4),
        net.constant((1, 4 * size), -0.2, 0.2),
        activations=functions,
        **settings,
    )
    between = net.quantize(net.op("opset1.Squeeze", lstm.output(0), [1]))
    gru = net.op(
        "opset5.GRUSequence",
        between,
        states[1],
        [length],
        *kernels(3),
        net.constant((1, 3 * size), -0.2, 0.2),
        activations=functions[:2],
        linear_before_reset=False,
        **settings,
    )
    return net.linear(net.quantize(gru.output(0)), 5)


def streaming(net: Sketch) -> Value:
    """Sound that comes in pieces: the last frames are kept in variables (ReadValue and Assign of both versions)."""
    x = net.quantize(net.input("frames", (8, 1, 16)), symmetric=True)
    start = np.zeros((1, 8, 1, 4), np.float32)
    for opset in ("opset3", "opset6"):
        kept = net.op("opset3.ReadValue", start, variable_id=opset) if opset == "opset3" else net.state(opset, start)
        joined = net.quantize(net.op("opset1.Concat", kept, x, axis=3), symmetric=True)
        latest = net.op("opset8.Slice", joined, [16], [20], [1], [3])
        net.sinks.append(net.op(f"{opset}.Assign", latest, variable_id=opset))
        x = net.quantize(net.relu(_along(net, joined)), symmetric=True)
    return _along(net, x)


def _along(net: Sketch, data: Value) -> Node:
    """A convolution over five frames of [1, 8, 1, frames], without padding."""
    return net.op("opset1.Convolution", data, net.weights((8, 8, 1, 5)), **window(), dilations=[1, 1])


def half_precision(net: Sketch) -> Value:
    """A residual network whose tensors are all f16."""
    x = net.quantize(_stem(net))
    y = net.quantize(net.relu(net.convolution(x, 16)))
    x = net.quantize(net.relu(net.op("opset1.Add", net.convolution(y, 16), x)))
    x = net.op("opset1.ReduceMean", x, [2, 3], keep_dims=False)
    return net.linear(net.quantize(x), 10)


def leaky(net: Sketch) -> Value:
    """Signed data with zero points before leaky ReLU (PRelu) and average pooling, and nothing quantized again after."""
    x = net.quantize(net.convolution(net.quantize(net.input("image", (3, 128, 128))), 32, stride=2))
    for channels in (64, 96, 128):
        slope = np.full(1, 0.1, np.float32)
        x = net.quantize(net.convolution(net.op("opset1.PRelu", x, slope), channels))
        x = net.quantize(net.convolution(net.op("opset1.PRelu", x, slope), channels))
        x = net.pool("AvgPool", x, 2, stride=2)
    return net.convolution(x, 16, 1)


def shared_head(net: Sketch) -> Value:
    """RetinaNet-like: one head for three scales; its convolutions share their weights and their bias constants."""
    x = net.quantize(net.input("image", (3, 128, 128)))
    scales = []
    for channels in (32, 64, 96, 96):
        x = net.quantize(net.relu(net.convolution(x, channels, stride=2)))
        scales.append(x)
    scales = [net.quantize(net.relu(net.convolution(x, 96, 1))) for x in scales[1:]]
    for outputs in (96, 96, 96, 24):
        weights = net.weights((outputs, 96, 3, 3))
        bias = net.as_output(net.constant((1, outputs, 1, 1), -0.3, 0.3))
        scales = [net.op("opset1.Convolution", x, weights, **window(pad=1), dilations=[1, 1]) for x in scales]
        scales = [net.op("opset1.Add", x, bias) for x in scales]
        if outputs == 96:
            scales = [net.quantize(net.relu(x)) for x in scales]
    return scales


def beyond(net: Sketch) -> Value:
    """Operations without a rule in the native library: GatherElements, Maximum, Minimum, Select, Roll, Tile, later pools."""
    x = net.quantize(net.relu(net.convolution(net.quantize(_stem(net)), 16)))
    pool = window() | {"kernel": [2, 2], "dilations": [1, 1], "rounding_type": "floor", "axis": 0}
    x = net.op("opset8.MaxPool", x, **pool, index_element_type="i64").output(0)
    rolled = net.op("opset7.Roll", x, [3, 5], [2, 3])
    most, least = (net.op(f"opset1.{kind}", x, rolled) for kind in ("Maximum", "Minimum"))
    mask = opset1.constant(np.arange(16).reshape(1, 16, 1, 1) % 3 == 0).output(0)
    x = net.op("opset1.Tile", net.op("opset1.Select", mask, most, least), [1, 1, 1, 2])
    x = net.quantize(net.relu(net.convolution(x, 16, stride=2)))
    x = net.op("opset14.MaxPool", x, **pool, index_element_type="i64").output(0)
    x = net.op("opset6.GatherElements", x, np.random.default_rng(0).integers(0, 15, (1, 16, 15, 30)), axis=2)
    x = net.quantize(net.relu(net.convolution(x, 16)))
    mean = {"kernel": [2, 2], "exclude-pad": True, "rounding_type": "floor"}
    x = net.quantize(net.convolution(net.op("opset14.AvgPool", x, **window(), **mean), 16))
    resized = np.array([2.0, 2.0], np.float32)
    x = net.op("opset11.Interpolate", x, resized, [2, 3], **_NEAREST, **_BY_SCALES)
    weights = net.weights((4, 4, 2, 2, 2), (0, 2), fan_in=4)
    x = net.quantize(net.relu(net.convolution(x, 16, stride=2)))
    return net.op("opset1.GroupConvolutionBackpropData", x, weights, **window(stride=2), **_TRANSPOSED)


SKETCHES: dict[str, Draw] = {
    sketch.__name__: sketch
    for sketch in (
        *(dilated, super_resolution, face, upsampling, gated, shuffled, depthwise, tokens),
        *(recurrent, streaming, half_precision, leaky, shared_head, beyond),
    )
}
PRECISIONS = {"half_precision": "f16"}
