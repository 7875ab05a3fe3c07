"""Transformed models in the forms in which they are compiled, for the tests of the lowering."""

from __future__ import annotations

import hashlib
import re

import numpy as np
import openvino

import ovlpt
from ovlpt.device import PluginLowering
from ovlpt.fake_quantize import fake_quantize
from ovlpt.inspect.float_model import simulate
from ovlpt.openvino_api import Manager, NodeFactory, opset1
from tests.conftest import EXACT
from tests.networks import (
    const,
    int8_weights,
    model,
    parameter,
    quantized,
)


def weighted(layers):
    return [
        layer
        for layer in layers.executed
        if layer.layer_type in ("Convolution", "FullyConnected", "MatMul", "Deconvolution")
    ]


def drop_in(net, core):
    """Both passes in one Manager, as in a pipeline that compiles by itself."""
    manager = Manager()
    manager.register_pass(ovlpt.LowPrecision.from_config(ovlpt.plugin_config.for_device(core, "CPU")))
    manager.register_pass(PluginLowering("CPU"))
    lowered = net.clone()  # the original is what it is compared with
    manager.run_passes(lowered)
    return lowered


def ways(net, core) -> dict:
    """What a user may run, and the simulation that it is compared with, compiled in f32."""
    lowered = {"transformed": ovlpt.transform(net, core=core), "drop-in": drop_in(net, core)}
    return {
        "simulation": simulate(net, core),
        "compiled": ovlpt.compile_model(net, "CPU", EXACT, core=core),
        **{
            name: core.compile_model(each, "CPU", {**EXACT, **ovlpt.lpt_properties(each, "CPU")})
            for name, each in lowered.items()
        },
    }


FORMS = ["in memory", "saved", "with the plugin's own LPT"]


def compiled_in(form, net, core, path, **properties):
    """The transformed model in one of `FORMS`."""
    lowered = ovlpt.transform(net, core=core, serializable=form != "in memory")
    return _compiled(form, lowered, core, path, properties)


def compiled_in_each(net, core, path, **properties):
    """The transformed model in each of `FORMS`, with the name of the form: two of them are of one transformation."""
    in_memory, serializable = (ovlpt.transform(net, core=core, serializable=each) for each in (False, True))
    for form in FORMS:
        lowered = in_memory if form == "in memory" else serializable
        yield form, _compiled(form, lowered, core, path, properties)


def _compiled(form, lowered, core, path, properties):
    if form == "saved":
        openvino.save_model(lowered, path / "net.xml", compress_to_fp16=False)
        lowered = path / "net.xml"
    own = "YES" if form == FORMS[2] else "NO"
    return core.compile_model(lowered, "CPU", {**EXACT, "LP_TRANSFORMS_MODE": own, **properties})


NAMES = re.compile(rb' (output_)?names?="[^"]*"')  # numbered anew with each model that is built


def content_of(net, folder) -> str:
    """A digest of what a model computes: equal for models that were built alike."""
    files = folder / "content.xml", folder / "content.bin"
    openvino.serialize(net, *map(str, files))
    text, weights = (file.read_bytes() for file in files)
    return hashlib.sha256(NAMES.sub(b"", text) + weights).hexdigest()


def layer_of_eight(kind, data):
    """From 8 channels to 8, over one pixel again where there is one."""
    if kind.startswith("groups"):
        size = {"groups": 4, "groups of two": 2, "groups of one": 1}[kind]
        stored = 2 * np.random.default_rng(0).integers(-31, 32, (8 // size, size, size, 3, 3))
        scale = const(np.linspace(0.004, 0.008, 8).reshape(*stored.shape[:2], 1, 1, 1))
        weights = opset1.multiply(opset1.convert(const(stored, "i8"), "f32"), scale)
        layer = opset1.group_convolution(data, weights, [1, 1], [1, 1], [1, 1], [1, 1])
    else:
        size, stride = (3 if kind == "window" else 1), (2 if kind == "stride" else 1)
        weights, pads = int8_weights([8, 8, size, size]), [size // 2] * 2
        layer = opset1.convolution(data, weights, [stride] * 2, pads, pads, [1, 1])
    return opset1.add(layer, const(np.linspace(-1, 1, 8).reshape(1, 8, 1, 1)))


def recurrent(batch: int = 1, transposed: str = ""):
    """An LSTM whose data, state, weights and recurrent weights are quantized; and its numbers by hand, of one sample.

    ``transposed``: "x" or "h", whose first two axes change places after its FakeQuantize; or "columns", the data of an
    image of one row, which another operation reads as well; or "image", the same with an interval of the image's rank,
    as a scale that was taken into it leaves it, and another reader of the columns; or "pooled", those of an image of two
    rows, none of which is negative.
    """

    generator = np.random.default_rng(0)
    shapes = {"x": [batch, 6, 16], "h": [batch, 1, 32]}
    if transposed in ("columns", "image", "pooled"):
        shapes["x"] = [batch, 16, 2 if transposed == "pooled" else 1, 6]
    elif transposed:
        shapes[transposed][:2] = shapes[transposed][1::-1]
    x, h = (parameter(shape, name=name) for name, shape in shapes.items())
    w, r = (generator.uniform(-0.3, 0.3, shape).astype(np.float32) for shape in ((1, 128, 16), (1, 128, 32)))
    b = generator.uniform(-0.1, 0.1, (1, 128)).astype(np.float32)
    intervals = dict.fromkeys("xh", (-2.0, 1.984375))  # the one grid that its kernel has
    if transposed == "pooled":
        intervals["x"] = (0.0, 2.55)
    data, state = (quantized(each, *intervals[name]) for name, each in (("x", x), ("h", h)))
    if transposed == "image":
        data = quantized(x, *(np.full((1, 1, 1, 1), end) for end in intervals["x"]))
    other = [opset1.relu(data)] if transposed == "columns" else []
    if transposed == "pooled":
        data = opset1.max_pool(data, [2, 1], [0, 0], [0, 0], [2, 1])
    if transposed in ("columns", "image", "pooled"):
        data = opset1.transpose(opset1.squeeze(data, const([2], "i64")), const([0, 2, 1], "i64"))
        other += [opset1.relu(data)] if transposed == "image" else []
    if transposed == "x":
        data = opset1.transpose(data, const([1, 0, 2], "i64"))
    if transposed == "h":
        state = opset1.transpose(state, const([1, 0, 2], "i64"))
    # half of the integers beside data of 255: CPUs without VNNI add two products in 16 bits
    most = 0.6 if transposed == "pooled" else 0.3
    weights, recurrence = (quantized(const(values), -most, most, 255) for values in (w, r))
    inputs = [data, state, const(np.zeros((batch, 1, 32))), const([6] * batch, "i64"), weights, recurrence, const(b)]
    attributes = {"hidden_size": 32, "direction": "forward", "activations": ["sigmoid", "tanh", "tanh"]}
    node = NodeFactory("opset5").create("LSTMSequence", [each.output(0) for each in inputs], attributes)

    def by_hand(x, h):
        def fq(values, low, high, levels=256):
            return fake_quantize(values, low, high, low, high, levels)

        def sigmoid(values):
            return 1 / (1 + np.exp(-values))

        steps, hidden, cell, outputs = fq(x, *intervals["x"])[0], fq(h, *intervals["h"])[0, 0], np.zeros(32), []
        for step in steps:
            gates = fq(w, -most, most, 255)[0] @ step + fq(r, -most, most, 255)[0] @ hidden + b[0]
            forget, keep, candidate, output = gates.reshape(4, 32)
            cell = sigmoid(forget) * cell + sigmoid(keep) * np.tanh(candidate)
            hidden = sigmoid(output) * np.tanh(cell)
            outputs.append(hidden)
        return np.array(outputs)[None]

    return model([opset1.squeeze(node.output(0), const([1], "i64")), *other], [x, h]), by_hand
