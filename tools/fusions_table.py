"""Which structure is fused by OpenVINO itself, which by ovlpt, and which by neither: found out by running.

python -m tools.fusions_table              prints the tables of docs/fusions.md
python -m tools.fusions_table --networks   whole networks, quantized with NNCF before and after (needs nncf)
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
from openvino._offline_transformations import apply_moc_transformations

from ovlpt.commands.fuse import operations_of
from ovlpt.fusions import fuse
from ovlpt.openvino_api import Core, Model, opset1
from ovlpt.trace import Outcome, Trace
from tests.fusions.networks import Numbers, c, model_of, normalized, to_nhwc, weighted
from tests.fusions.test_batch_norm import dequantized, fake_quantized
from tests.fusions.test_batch_norm_branch import network as branch
from tests.fusions.test_relu6 import clamped
from tests.fusions.test_small_batch_norm import Source, structure
from tests.fusions.test_split_convolution_concat import network as split
from tests.fusions.whole_networks import NETWORKS
from tests.numpy_model import run, run_on_plugin

HEAD = """The table comes from `python -m tools.fusions_table`: every structure is built, given to OpenVINO's common optimizations
(`apply_moc_transformations` of OpenVINO 2026.4) alone, and to `fuse`. *Wrong*: these, or the CPU plugin, give
other numbers than numpy; *fails*: they raise an error.

| structure | layout | parameters | OpenVINO alone | ovlpt |
| --- | --- | --- | --- | --- |
"""
_RESTS = (
    "BatchNormInference",
    "Clamp",
    "Divide",
    "If",
    "Multiply",
    "ReadValue",
    "Subtract",
    "Slice",
    "StridedSlice",
)

Row = tuple[str, str, str, Callable[[], tuple[Model, dict]]]


def rows() -> Iterator[Row]:
    kinds = {
        "Convolution": "conv", "GroupConvolution": "group_conv", "depthwise": "depthwise",
        "ConvolutionBackpropData": "deconv", "GroupConvolutionBackpropData": "group_deconv",
        "MatMul": "matmul",
    }  # fmt: skip
    for name, kind in kinds.items():
        yield f"{name} + BatchNorm", "NCHW", "Const", lambda kind=kind: (_batch_norm(kind), {})
    for name, wrap in (("FakeQuantize", fake_quantized), ("i8 with a scale", dequantized)):
        yield (
            f"Convolution + BatchNorm, weights {name}",
            "NCHW",
            "Const",
            lambda w=wrap: (_batch_norm("conv", wrap=w), {}),
        )
    for name, letters in (("Mul", "m"), ("Add", "a"), ("Mul + Add", "ma"), ("Add + Mul", "am")):
        yield (
            f"Convolution + BatchNorm + {name}",
            "NCHW",
            "Const",
            lambda t=letters: (_batch_norm("conv", letters=t), {}),
        )
    yield (
        "Convolution + BatchNorm + Mul + Add",
        "NHWC",
        "Const",
        lambda: (_batch_norm("conv", letters="ma", last=True), {}),
    )
    for title, spelling in (("small", "multiply_power"), ("small (x - mean first)", "subtract_divide_sqrt")):
        for scale, offset in ((True, True), (True, False), (False, True), (False, False)):
            yield from _small(title, spelling, scale, offset)
    for offset in (True, False):
        yield from _small("simplified", "simplified", True, offset)
    yield "BatchNorm of an activation", "NCHW", "Const", lambda: (_after_relu(), {})
    yield (
        "small BatchNorm of an activation",
        "NCHW",
        "Const",
        lambda: (structure("multiply_power", 1, 1, before=opset1.relu)[0], {}),
    )
    for name, value in (("false", False), ("true", True), ("an input", None)):
        yield (
            f"If over training and inference, condition {name}",
            "NCHW",
            "Const",
            lambda v=value: (branch(v), {}),
        )
    yield (
        "If over training and inference, condition an input with a value", "NCHW", "Const",
        lambda: (branch(None), {"is_training": False}),
    )  # fmt: skip
    for cut in ("Split", "VariadicSplit", "StridedSlice", "Slice"):
        yield (
            f"{cut} + Convolutions + Concat",
            "NCHW",
            "Const",
            lambda cut=cut: (split(cut=cut, bias=False), {}),
        )
    yield "Split + Convolutions + biases + Concat", "NCHW", "Const", lambda: (split(), {})
    yield (
        "Split + Convolutions + biases + Concat",
        "NHWC",
        "Const",
        lambda: (split(axis=3, concat_axis=3, channels_last=True), {}),
    )
    for name, order in (
        ("in another order", (2, 0, 3, 1)),
        ("repeated", (0, 0, 1, 1)),
        ("not all", (0, 1, 2)),
    ):
        yield (
            f"Split, pieces {name}, + Convolutions + Concat",
            "NCHW",
            "Const",
            lambda o=order: (split(o, bias=False), {}),
        )
    yield (
        "Split + Convolutions + Concat of rows",
        "NCHW",
        "Const",
        lambda: (split(bias=False, concat_axis=2), {}),
    )
    yield (
        "Split + Convolutions of different dilation + Concat", "NCHW", "Const",
        lambda: (split(bias=False, dilation=lambda at: 1 + at % 2), {}),
    )  # fmt: skip
    yield (
        "Split, pieces in another order, + Convolutions with weights from data + Concat", "NCHW", "Parameter",
        lambda: (split((2, 0, 3, 1), bias=False, weights=_input), {}),
    )  # fmt: skip
    for high in (5.9, 6.0, 6.011, 6.1):
        yield (
            f"Clamp(0, 6) + FakeQuantize(0, {high:g})",
            "any",
            "Const",
            lambda h=high: (clamped(0.0, 6.0, (0, h, 0, h)), {}),
        )


def _small(title: str, spelling: str, scale: bool, offset: bool) -> Iterator[Row]:
    name = f"{title} BatchNorm, any of scale and offset"
    for layout in ("NCHW", "NHWC"):
        for kind in ("Const", "ReadValue", "Parameter"):

            def build(layout: str = layout, kind: str = kind) -> tuple[Model, dict]:
                model, source, _ = structure(
                    spelling,
                    scale,
                    offset,
                    layout,
                    Source("ReadValue+Assign" if kind == "ReadValue" else kind),
                )
                return model, source.values

            yield name, layout, kind, build


def _batch_norm(kind: str, wrap=lambda values, axes: c(values), letters: str = "", last: bool = False) -> Model:
    numbers = Numbers(1)
    x, y, channels = weighted(kind, numbers, wrap=wrap)
    y = normalized(y, numbers.batch_norm(channels))
    y = to_nhwc(y) if last else y
    for letter in letters:
        values = numbers.signed(channels)
        y = {"m": opset1.multiply, "a": opset1.add}[letter](y, c(values if last else values.reshape(1, -1, 1, 1)))
    return model_of(y, x)


def _after_relu() -> Model:
    numbers = Numbers(1)
    x, y, channels = weighted("conv", numbers)
    return model_of(normalized(opset1.relu(y), numbers.batch_norm(channels)), x)


def _input(values: np.ndarray, at: int):
    return opset1.parameter(list(values.shape), np.float32, name=f"w{at}")


def table() -> str:
    return HEAD + "\n".join(f"| {' | '.join(line)} |" for line in lines()) + "\n"


def before_and_after() -> str:
    """Operations of whole networks."""
    made = {name: build(size=64) for name, build in NETWORKS.items()}
    counts = {name: (operations_of(model), operations_of(fuse(model))) for name, model in made.items()}
    kinds = sorted({kind for pair in counts.values() for each in pair for kind in each})
    rows = [["operation", *counts], ["---"] * (1 + len(counts))]
    for kind in kinds:
        rows.append([kind, *(f"{before.get(kind, 0)} → {after.get(kind, 0)}" for before, after in counts.values())])
    rows.append(["all", *(f"{sum(before.values())} → {sum(after.values())}" for before, after in counts.values())])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def lines() -> list[tuple[str, str, str, str, str]]:
    """(structure, layout, parameters, OpenVINO, ovlpt); kinds of parameters that differ in no verdict share a
    line.
    """
    merged: dict[tuple[str, str, str, str], dict[str, None]] = {}
    for name, layout, parameters, build in rows():
        merged.setdefault((name, layout, *_verdicts(*build())), {})[parameters] = None
    return [(name, layout, ", ".join(kinds), *found) for (name, layout, *found), kinds in merged.items()]


def _verdicts(model: Model, values: dict) -> tuple[str, str]:
    feed = _feed(model, values)
    expected = run(model, feed)[0]
    alone = model.clone()
    try:
        apply_moc_transformations(alone, False)
        native = _verdict(alone, expected, feed)
        if not _agrees(run_on_plugin(model, feed)[0], expected, 1e-2):
            native = "**wrong**"
    except RuntimeError:
        native = "**fails**"
    trace = Trace()
    own = _verdict(fuse(model, trace, values), expected, feed)
    refused = [event for event in trace if event.outcome is Outcome.REJECTED]
    return native, f"refused: {refused[0].reason}" if refused else own


def _feed(model: Model, values: dict) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    feed = {}
    for parameter in model.get_parameters():
        name, is_bool = (
            parameter.get_friendly_name(),
            parameter.get_element_type().get_type_name() == "boolean",
        )
        feed[name] = np.array(False) if is_bool else rng.uniform(0.5, 8, list(parameter.shape)).astype(np.float32)
    return feed | {name: np.asarray(value) for name, value in values.items()}


def _agrees(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    return actual.shape == expected.shape and np.abs(actual - expected).max() <= tolerance * np.abs(expected).max()


def _verdict(model: Model, expected: np.ndarray, feed: dict[str, np.ndarray]) -> str:
    try:
        actual = run(model, feed)[0]
    except (ValueError, NotImplementedError):
        actual = np.empty(0)
    if not _agrees(actual, expected, 1e-4):
        return "**wrong**"
    if sum("Convolution" in node.get_type_name() for node in model.get_ops()) > 1:
        return "no"
    left = Counter(node.get_type_name() for node in model.get_ops())
    for node in model.get_ops():  # what scales weights is not a rest
        if "Conv" in node.get_type_name() and node.get_input_size() > 1:
            left["Multiply"] -= node.input_value(1).get_node().get_type_name() == "Multiply"
    return "no" if any(left[kind] > 0 for kind in _RESTS) else "fused"


def networks() -> str:
    """Executed layers and precisions of networks, with and without `fuse` before `nncf.quantize`."""
    import nncf

    lines = ["| network | | int8 convolutions | executed layers | ms |", "| --- | --- | --- | --- | --- |"]
    for name, build in NETWORKS.items():
        model = build(size=64)
        data = [np.random.default_rng(seed).normal(size=(1, 64, 64, 3)).astype(np.float32) for seed in range(8)]
        requests = {}
        for label, candidate in (("as it is", model), ("fused", fuse(model))):
            quantized = nncf.quantize(candidate, nncf.Dataset(data), subset_size=8)
            config = {"PERF_COUNT": True, "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
            requests[label] = Core().compile_model(quantized, "CPU", config).create_infer_request()
        times: dict[str, list[float]] = {label: [] for label in requests}
        for _ in range(60):
            for label, request in requests.items():
                start = time.perf_counter()
                request.infer([data[0]])
                times[label].append(time.perf_counter() - start)
        for label, request in requests.items():
            layers = [layer for layer in request.profiling_info if layer.status.name == "EXECUTED"]
            convolutions = [layer for layer in layers if layer.node_type in ("Convolution", "GroupConvolution")]
            int8 = [layer for layer in convolutions if layer.exec_type.lower().endswith("i8")]
            counts = f"{len(int8)} of {len(convolutions)} | {len(layers)}"
            lines.append(f"| {name} | {label} | {counts} | {1e3 * np.median(times[label]):.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(networks() if "--networks" in sys.argv else f"{table()}\n{before_and_after()}", end="")
