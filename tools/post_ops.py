"""The post-operation algebra against the facts.

    python -m tools.post_ops predict [--cases 500] [--seed 0] [--all]
        predicted oneDNN attributes of random layers against those that the installed OpenVINO creates

What keeps a scale after an int8 layer from being fused into its integer weights, tried on 2026.4 and
2024.6: a constant of another rank ([C, 1, 1]) and a Convert with the mark of decompression do not, both are
matched or folded before; a Clamp does and costs an eltwise_clip and a binary_mul, which the kernel for one
element of dynamic sizes computes wrongly; a scale in f64 between two Converts does and costs nothing
(`ovlpt.device.lowering.scales`). With the scale alone, the bias after it is fused into a FakeQuantize and
comes back as a binary_add, so it is in f64 too.

`predict` compiles in a subprocess with oneDNN's log switched on and infers nothing. It prints one line for
each case that is not as it should be, then a summary, and returns 1 if there was any.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from ovlpt.plugin_config import this_cpu

from ovlpt.device import has_avx512
from ovlpt.fake_quantize import chain as ops
from ovlpt.fake_quantize.chain import FUNCTIONS, Chain, Operation
from ovlpt.fake_quantize.composer import Attributes, Step, predict
from ovlpt.fake_quantize.forms import FakeQuantize
from ovlpt.fake_quantize.simplify import merge, simplify
from ovlpt.inspect.post_ops import Logged
from ovlpt.openvino_api import Core

INPUTS = 16
CHANNELS = 32
ACTIVATION_SCALE = np.float32(2.55) / np.float32(255)


# random layers


@dataclass
class Layer:
    """A convolution, what follows it, and whether another int8 convolution consumes the result.

    ``tail`` is what the model holds after the convolution and its bias: basic operations and FakeQuantize.
    """

    int8: bool
    bias: bool
    weight_scale: np.ndarray
    tail: list[Step] = field(default_factory=list)
    consumer: bool = False

    def __str__(self) -> str:
        kind = "int8" if self.int8 else "float"
        scales = "per channel" if self.weight_scale.size > 1 else "per tensor"
        tail = " · ".join(map(str, self.tail)) or "nothing"
        bias, consumer = ("bias, " if self.bias else ""), (" -> int8" if self.consumer else "")
        return f"{kind} convolution, weights {scales}, {bias}{tail}{consumer}"


def random_layer(rng: np.random.Generator) -> Layer:
    """int8 or float, with or without bias, elementwise operations, residual sum and FakeQuantize."""
    int8 = bool(rng.integers(2))
    per_channel_weights = bool(rng.integers(2))
    scale = rng.uniform(0.005, 0.02, CHANNELS if per_channel_weights else 1).astype(np.float32)
    layer = Layer(int8, bool(rng.integers(2)), scale)
    if int8 and not rng.integers(5):
        layer.tail = _residual(rng)
    elif rng.integers(3):
        layer.tail = [[], [_activation(rng)], [_activation(rng)], _elementwise(rng)][rng.integers(4)]
        layer.consumer = int8 and bool(rng.integers(2))
        layer.tail.append(_fake_quantize(rng, plain=layer.consumer))
    else:
        layer.tail = _elementwise(rng)
    return layer


def _activation(rng) -> Operation:
    return [ops.Relu(), ops.Eltwise("sigmoid"), ops.Eltwise("tanh")][rng.integers(3)]


def _vector(rng, low: float, high: float) -> np.ndarray:
    return rng.uniform(low, high, CHANNELS if rng.integers(2) else 1).astype(np.float32)


def _elementwise(rng) -> list[Operation]:
    """Up to four operations, the first no multiply or add (those go into weights and bias), none idle."""
    names = [name for name in FUNCTIONS if name not in ("elu", "swish")]
    tail: list[Operation] = []
    for at in range(rng.integers(1, 5)):
        kinds = ["relu", "prelu", "eltwise", "clip"] + (["multiply", "add"] * 2 if at else [])
        match kinds[rng.integers(len(kinds))]:
            case "relu":
                tail.append(ops.Relu())
            case "prelu":
                tail.append(ops.Relu(rng.uniform(0.1, 0.5, CHANNELS)))
            case "eltwise":
                others = [ops.Eltwise("elu", rng.uniform(0.5, 2)), ops.Eltwise("swish", 1.0)]
                tail.append([*map(ops.Eltwise, names), *others][rng.integers(len(FUNCTIONS))])
            case "clip":
                tail.append(ops.Clip(rng.uniform(-2, -0.1), rng.uniform(0.1, 2)))
            case "multiply":
                tail.append(ops.Multiply(_vector(rng, 0.2, 3)))
            case "add":
                tail.append(ops.Add(_vector(rng, 0.2, 3)))
    return tail


def _fake_quantize(rng, plain: bool) -> FakeQuantize:
    levels = int(rng.choice([256, 256, 255, 16]))
    high = np.float32(rng.uniform(0.5, 30))
    low = [np.float32(0), np.float32(-high * levels / (levels - 2)), np.float32(-high * 0.4)][rng.integers(3)]
    if plain:
        return FakeQuantize(low, high, low, high, levels)
    inputs, outputs = (_vector(rng, 0.5, 2) if rng.integers(2) else np.ones(1, np.float32) for _ in range(2))
    return FakeQuantize(low * inputs, high * inputs, low * outputs, high * outputs, levels)


def _residual(rng) -> list[Step]:
    """A sum with another branch; a FakeQuantize before it, after it, both or none."""
    before, after = (([_fake_quantize(rng, plain=bool(rng.integers(2)))] if rng.integers(2) else []) for _ in range(2))
    return [*before, ops.Sum(), *([_activation(rng)] if rng.integers(2) else _elementwise(rng)), *after]


# the same layer as a model, and as what low precision transformations leave of it


@dataclass
class Built:
    """An OpenVINO model of a layer, the weights that it multiplies by ([CHANNELS, inputs]), its bias."""

    model: object
    weights: np.ndarray
    bias: np.ndarray | None


def build(layer: Layer, rng: np.random.Generator) -> Built:  # noqa: C901, one branch for each post-operation
    """The layer as an OpenVINO model of 1x1 convolutions, with quantized weights and activations where it is
    int8.

    Weights stay within ±63, so that no CPU saturates their pairwise sums.
    """
    import openvino as ov

    opset = getattr(ov, "opset13", None) or importlib.import_module("openvino.runtime.opset13")

    def constant(vector: np.ndarray):
        return opset.constant(vector.reshape((1, -1, 1, 1)) if vector.size > 1 else vector.reshape(()))

    def convolution(node, integers: np.ndarray, scale: np.ndarray):
        integers = integers.reshape(*integers.shape, 1, 1)
        scale = np.broadcast_to(scale.reshape(-1, 1, 1, 1), (len(integers), 1, 1, 1)).astype(np.float32)
        if layer.int8:
            weights = opset.multiply(opset.convert(opset.constant(integers), "f32"), opset.constant(scale))
        else:
            weights = opset.constant(integers.astype(np.float32) * scale)
        return opset.convolution(node, weights, [1, 1], [0, 0], [0, 0], [1, 1])

    parameter = node = opset.parameter([1, INPUTS, 8, 8], np.float32)
    inputs = INPUTS
    if any(isinstance(step, ops.Sum) for step in layer.tail):
        kernels = opset.constant(rng.normal(size=(CHANNELS, INPUTS, 1, 1)).astype(np.float32))
        branch = node = opset.relu(opset.convolution(node, kernels, [1, 1], [0, 0], [0, 0], [1, 1]))
        inputs = CHANNELS
    if layer.int8:
        zero, high = (opset.constant(np.float32(v)) for v in (0, 2.55))
        node = opset.fake_quantize(node, zero, high, zero, high, 256)
    integers = rng.integers(-63, 64, (CHANNELS, inputs)).astype(np.int8)
    node = convolution(node, integers, layer.weight_scale)
    bias = rng.normal(size=CHANNELS).astype(np.float32) if layer.bias else None
    if bias is not None:
        node = opset.add(node, constant(bias))
    for step in layer.tail:
        match step:
            case FakeQuantize():
                node = opset.fake_quantize(node, *map(constant, step.bounds), step.levels)
            case ops.Sum():
                node = opset.add(node, branch)
            case ops.Relu(slope):
                node = opset.relu(node) if slope.size == 1 else opset.prelu(node, opset.constant(slope))
            case ops.Clip(low, high):
                node = opset.clamp(node, float(low[0]), float(high[0]))
            case ops.Multiply(scale):
                node = opset.multiply(node, constant(scale))
            case ops.Add(shift):
                node = opset.add(node, constant(shift))
            case ops.Eltwise("elu", alpha):
                node = opset.elu(node, alpha)
            case ops.Eltwise("gelu_erf"):
                node = opset.gelu(node, "erf")
            case ops.Eltwise(function):
                node = getattr(opset, function)(node)
    if layer.consumer:
        consumer = rng.integers(-63, 64, (8, CHANNELS)).astype(np.int8)
        node = convolution(node, consumer, np.full(1, 0.01, np.float32))
    model = ov.Model([opset.result(node)], [parameter], "layer")
    return Built(model, integers if layer.int8 else integers * layer.weight_scale.reshape(-1, 1), bias)


def prediction(layer: Layer) -> Attributes:
    """What the composer says about the layer, once its model has been transformed as OpenVINO does.

    Common optimizations merge neighbouring multiplies and adds, also into a FakeQuantize, and drop a relu or
    a clip before one whose range lies within it. Low precision transformations take every multiply of a
    quantized model for a dequantization and move it down, through relu, prelu and (per tensor) clip, into a
    FakeQuantize if there is one.
    """
    tail = _common_optimizations(layer.tail)
    if not layer.int8 and not any(isinstance(step, FakeQuantize) for step in tail):
        return predict(tail, int8=False, bias=layer.bias)
    moved = _Moved(ACTIVATION_SCALE * layer.weight_scale if layer.int8 else None)
    dequantization = after_sum = None
    steps: list[Step] = []
    if layer.bias or not tail or not moved.passes(tail[0]):
        dequantization, moved = moved.scale, _Moved()
    for at, step in enumerate(tail):
        if isinstance(step, FakeQuantize) and at + 1 < len(tail) and isinstance(tail[at + 1], ops.Sum):
            stored = _stored(step, _is_signed(step))
            span = stored.output_high - stored.output_low
            step, after_sum = stored, (step.output_high - step.output_low) / span
        if isinstance(step, ops.Sum) and dequantization is not None and not layer.bias:
            # AddTransformation leaves the layer's dequantization and a multiply by 1 after the sum
            after_sum = np.ones(1, np.float32)
        if isinstance(step, ops.Sum) and after_sum is not None:
            steps.append(step)
            moved = _Moved(after_sum)
            continue
        if not moved.passes(step):
            steps += moved.operations()
            moved = _Moved()
        steps += moved.through(step)
    steps += moved.operations()
    store = None
    if layer.consumer:
        signed = this_cpu.takes_signed_activations() and _is_signed(steps[-1])
        steps[-1], store = _stored(steps[-1], signed), "i8" if signed else "u8"
    return predict(
        steps,
        int8=layer.int8,
        bias=layer.bias,
        dequantization=dequantization,
        store=store,
        binaries=not layer.int8 or has_avx512(_core()),
    )


@functools.cache
def _core() -> Core:
    return Core()


def _is_signed(quantizer: FakeQuantize) -> bool:
    """Whether its range is as symmetric as an even number of levels can be, which is stored in i8."""
    return quantizer.levels != 255 and bool(np.all(quantizer.output_zero_point == quantizer.levels // 2))


def _stored(quantizer: FakeQuantize, signed: bool = False) -> FakeQuantize:
    """The FakeQuantize whose output is stored in u8 (i8): its dequantization has gone to the consumers."""
    levels = 256 if quantizer.levels == 255 else quantizer.levels
    low = -levels // 2 if signed else 0
    return FakeQuantize(quantizer.input_low, quantizer.input_high, low, low + levels - 1, quantizer.levels)


@functools.cache
def _is_2024() -> bool:
    """2024.6 keeps a clip that a FakeQuantize makes superfluous, and has no ``profile_create`` in its log."""
    import openvino

    return openvino.get_version().startswith("2024")


def _common_optimizations(tail: list[Step]) -> list[Step]:
    done: list[Step] = []
    for step in tail:
        while isinstance(step, FakeQuantize) and done:
            il, ih, ol, oh = step.bounds
            match done[-1]:
                case ops.Multiply(scale):
                    step = FakeQuantize(il / scale, ih / scale, ol, oh, step.levels)
                case ops.Add(shift):
                    step = FakeQuantize(il - shift, ih - shift, ol, oh, step.levels)
                case ops.Relu(slope) if np.all(slope == 0) and np.all(il >= 0):
                    pass
                case ops.Clip(low, high) if np.all(low <= il) and np.all(high >= ih) and not _is_2024():
                    pass
                case _:
                    break
            done.pop()
        done.append(step)
        start = len(done)
        while start and isinstance(done[start - 1], ops.Multiply | ops.Add):
            start -= 1
        done[start:] = simplify(Chain(done[start:]), rules=[merge]).chain.operations
    return done


class _Moved:
    """A dequantization ``(x + shift) * scale`` on its way down through a quantized model."""

    def __init__(self, scale: np.ndarray | None = None):
        self.scale = scale
        self.shift: np.ndarray | None = None

    def passes(self, step: Step) -> bool:
        match step:
            case _ if self.scale is None:
                return True
            case ops.Relu():
                return self.shift is None
            case ops.Clip():
                return self.scale.size == 1 and (self.shift is None or self.shift.size == 1)
            case ops.Sum():
                return False
        return isinstance(step, ops.Multiply | ops.Add | FakeQuantize)

    def through(self, step: Step) -> list[Step]:
        """What stands above the dequantization once it has passed ``step``."""
        shift = np.float32(0) if self.shift is None else self.shift
        match step:
            case ops.Multiply(more):
                self.scale = more if self.scale is None else self.scale * more
                return []
            case _ if self.scale is None:
                return [step]
            case ops.Add(more):
                self.shift = more / self.scale + shift
                return []
            case ops.Clip(low, high):
                return [ops.Clip(low / self.scale - shift, high / self.scale - shift)]
            case FakeQuantize(il, ih, ol, oh, levels):
                step = FakeQuantize(il / self.scale - shift, ih / self.scale - shift, ol, oh, levels)
                self.scale = self.shift = None
        return [step]

    def operations(self) -> list[Operation]:
        shift = [] if self.shift is None else [ops.Add(self.shift)]
        idle = self.scale is None or np.all(self.scale == 1)
        return shift if idle else [*shift, ops.Multiply(self.scale)]


def run(layer: Layer, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """What the CPU plugin computes for the layer, and what its predicted attributes compute: [1, CHANNELS, 8,
    8] each.

    For layers without a sum and without a consumer.
    """
    import openvino as ov

    built = build(layer, rng)
    levels = rng.integers(0, 256, (1, INPUTS, 8, 8))
    x = levels * np.float64(ACTIVATION_SCALE)
    accumulator = np.einsum("oi,nihw->nohw", built.weights.astype(np.float64), levels if layer.int8 else x)
    configuration = {"INFERENCE_PRECISION_HINT": "f32", "SNIPPETS_MODE": "DISABLE"}
    compiled = ov.Core().compile_model(built.model, "CPU", configuration)
    chain = prediction(layer).chain(built.bias)
    return compiled({0: x.astype(np.float32)})[0], chain.run(accumulator.astype(np.float32), axis=1)


# oneDNN's log


def created(layers: int, seed: int) -> dict[int, str]:
    """The line that oneDNN prints for the convolution of each random layer, by its number."""
    environment = dict(os.environ)
    environment["ONEDNN_VERBOSE"] = "2" if _is_2024() else "profile_create"
    command = [sys.executable, "-m", "tools.post_ops", "compile", "--cases", str(layers), "--seed", str(seed)]
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    candidates: dict[int, list[str]] = {}
    number = -1
    for line in output.splitlines():
        if line.startswith("layer "):
            number = int(line.split()[1])
        elif ",create" in line and ",convolution," in line:
            candidates.setdefault(number, []).append(line)
    # before an int8 layer there may be the float convolution of a residual connection
    return {
        number: next((line for line in lines if re.search("src[:_]u8", line)), lines[0])
        for number, lines in candidates.items()
    }


def compile_layers(layers: int, seed: int) -> None:
    """Compile the random layers one by one, each announced by its number, for `created` to read."""
    import openvino as ov

    core = ov.Core()
    for number in range(layers):
        rng = np.random.default_rng((seed, number))
        built = build(random_layer(rng), rng)
        print("layer", number, flush=True)
        core.compile_model(built.model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "SNIPPETS_MODE": "DISABLE"})


def compare(layers: int, seed: int) -> Iterator[tuple[Layer, str, str, bool]]:
    """Each random layer with its predicted and its created attributes, and whether they agree."""
    lines = created(layers, seed)
    for number in range(layers):
        layer = random_layer(np.random.default_rng((seed, number)))
        predicted = str(prediction(layer))
        line = lines.get(number, "")
        agrees = bool(line) and Logged.parse(predicted).agrees(Logged.parse(line))
        shown = " ".join(re.findall(r"attr-(?:scales|post-ops):[^ ,]*", line)) if line else "no convolution"
        yield layer, predicted, shown, agrees


def run_predict(layers: int, seed: int, show_all: bool = False) -> int:
    """Print every disagreement (or everything) and the count; 1 if there is a disagreement."""
    import openvino

    agreed = 0
    for number, (layer, predicted, shown, agrees) in enumerate(compare(layers, seed)):
        agreed += agrees
        if show_all or not agrees:
            print(f"{number}: {layer}\n    predicted {predicted}\n    created   {shown}")
    print(f"OpenVINO {openvino.get_version()}: {agreed} of {layers} layers as predicted")
    return int(agreed != layers)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.post_ops", description=__doc__.split("\n\n")[0])
    parser.add_argument("what", choices=["predict", "compile"])
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="print every prediction, not only the wrong ones")
    arguments = parser.parse_args()
    match arguments.what:
        case "predict":
            return run_predict(arguments.cases or 500, arguments.seed, arguments.all)
        case _:
            compile_layers(arguments.cases or 500, arguments.seed)
            return 0


if __name__ == "__main__":
    sys.exit(main())
