"""Which scales and post-operations has each int8 layer: predicted, and as oneDNN really made it.

The prediction comes from the operations that the layer holds (the execution graph names them) and the rules of
`ovlpt.fake_quantize.composer`; what was made is read from oneDNN's own log of a process that compiles and infers
nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino

from ovlpt.device import transform
from ovlpt.device.execution_types import LayerExecution, execution_types, last_line
from ovlpt.device.hazards import Epilogue, epilogue
from ovlpt.device.int8_layers import is_int8_layer
from ovlpt.device.loading import read_model
from ovlpt.device.properties import F32, LATENCY, LPT_OFF
from ovlpt.fake_quantize.composer import Attributes, Step, predict
from ovlpt.fake_quantize.forms import FakeQuantize, adjust
from ovlpt.graph.names import given
from ovlpt.openvino_api import RELEASE, Core, Model, Node
from ovlpt.trace import InputError, OvlptError

# Without the cache of the plugin a layer is logged even where an equal one came before.
PROPERTIES = {**LATENCY, **F32, "CPU_RUNTIME_CACHE_CAPACITY": 0}
_COMPILED_FROM_HERE = "ovlpt compiles"
_KINDS = {
    "Convolution": ("convolution",),
    "Deconvolution": ("deconvolution",),
    "FullyConnected": ("inner_product", "matmul"),
    "MatMul": ("matmul",),
}


@dataclass(frozen=True)
class Logged:
    """Scales and post-operations, with masks and parameters, of a log line or of a prediction."""

    scales: tuple[str, ...]
    post_operations: tuple[tuple[str, tuple[float, ...]], ...]

    @classmethod
    def parse(cls, line: str) -> Logged:
        parts = {
            name: found[1] if (found := re.search(rf"attr-{name}:(\S+?)(?:[ ,]|$)", line)) else ""
            for name in ("scales", "post-ops")
        }
        scales = tuple(":".join(scale.split(":")[:2]) for scale in parts["scales"].split("+") if scale)
        post_operations: list[str] = []
        for text in filter(None, parts["post-ops"].split("+")):
            # a number such as 1e+06 holds the separator
            if re.fullmatch(r"\d+(:.*)?", text) and post_operations:
                text = post_operations.pop() + "+" + text
            post_operations.append(text)
        return cls(scales, tuple(map(cls._post_operation, post_operations)))

    @staticmethod
    def _post_operation(text: str) -> tuple[str, tuple[float, ...]]:
        kind, *parameters = text.split(":")
        if kind.startswith("binary"):
            return kind, (float(parameters[1]),)
        if kind == "sum":
            return kind, (float(parameters[0]) if parameters and not parameters[0][:1].isalpha() else 1.0,)
        numbers = [float(number) for number in parameters]
        while numbers and numbers[-1] == 0:
            numbers.pop()
        return kind, tuple(numbers)

    def difference(self, other: Logged, tolerance: float = 1e-4) -> str | None:
        """What sets two apart first: scales, kinds, or the parameters of a post-operation; None where nothing does."""
        if self.scales != other.scales:
            return f"scales {_joined(self.scales)}, not {_joined(other.scales)}"
        kinds, others = ([kind for kind, _ in each.post_operations] for each in (self, other))
        if kinds != others:
            return f"{_joined(kinds)}, not {_joined(others)}"
        for (kind, mine), (_, theirs) in zip(self.post_operations, other.post_operations, strict=True):
            if len(mine) != len(theirs) or not np.allclose(mine, theirs, rtol=tolerance, atol=tolerance):
                return f"{kind} with {mine}, not {theirs}"
        return None

    def agrees(self, other: Logged, tolerance: float = 1e-4) -> bool:
        return self.difference(other, tolerance) is None


def _joined(words: Sequence[str]) -> str:
    return "+".join(words) or "none"


@dataclass(frozen=True, slots=True)
class LayerPostOps:
    """One int8 layer.

    ``predicted``, ``actual``: scales and post-operations in oneDNN's spelling. ``reason``: why they differ, None
    where they
    are equal. ``saved``: post-operations fewer with ranges that have an integer zero point.
    """

    name: str
    predicted: str
    actual: str
    equal: bool
    reason: str | None
    saved: int

    def to_json(self) -> dict[str, object]:
        return {field: getattr(self, field) for field in ("name", "predicted", "actual", "equal", "reason", "saved")}


def post_ops(
    model: Model | str | Path, device: str = "CPU", stock: bool = False, core: Core | None = None
) -> list[LayerPostOps]:
    """The int8 layers of the compiled model, in order of execution.

    ``stock``: compiled with the plugin's own LPT, in place of ovlpt's. Raises `InputError` as `transform`, and for
    devices
    whose plugin does not run on oneDNN's CPU engine.
    """
    if device != "CPU":
        raise InputError(f'there is no log of post-operations on "{device}"; give the device "CPU"')
    core = core or Core()
    source = read_model(model, core)
    lowered = transform(  # the plugin's own LPT does not canonicalize
        model if not isinstance(model, Model) else source,
        device,
        lowered=not stock,
        native_only=stock,
        core=core,
        serializable=False,
    )
    nodes = [node for node in lowered.get_ordered_ops() if is_int8_layer(node)]
    layers, lines = _compiled(source, stock)
    return [
        _compared(layer, node, line)
        for (layer, node), line in zip(_paired(layers, nodes), _lines(layers, lines), strict=True)
        if layer.is_int8
    ]


def _compared(layer: LayerExecution, node: Node | None, line: str | None) -> LayerPostOps:
    actual = " ".join(re.findall(r"attr-(?:scales|post-ops):[^ ,]*", line)) if line else ""
    if node is None:
        return LayerPostOps(
            layer.name, "", actual, False, "no operation of the transformed model has a name of this layer", 0
        )
    chain = epilogue(node, frozenset(layer.original_names))
    predicted = _predicted(chain.steps, chain, layer, node)
    adjusted = _predicted([_adjusted(step) for step in chain.steps], chain, layer, node)
    if line is None:
        reason = "oneDNN's log has no line for it: another kernel runs the layer"
    else:
        reason = Logged.parse(str(predicted)).difference(Logged.parse(line))
    if reason and chain.unread:
        reason += f" (the operation {chain.unread} has no post-operation here)"
    if (
        reason
        and chain.steps
        and isinstance(last := chain.steps[-1], FakeQuantize)
        and layer.output_precision in ("u8", "i8")
    ):
        stored = "i8" if last.output_low.min() < 0 else "u8"
        if stored != layer.output_precision:
            reason = f"the plugin's own LPT stores {layer.output_precision}, ovlpt {stored}: {reason}"
    saved = len(predicted.post_operations) - len(adjusted.post_operations)
    return LayerPostOps(layer.name, str(predicted), actual or "no attributes", reason is None, reason, max(saved, 0))


def _predicted(steps: Sequence[Step], chain: Epilogue, layer: LayerExecution, node: Node) -> Attributes:
    grouped = node.get_type_name() == "GroupConvolution"
    store = layer.output_precision if layer.output_precision in ("u8", "i8") else None
    rank = node.get_output_partial_shape(0).rank.get_length()
    return predict(
        steps,
        int8=True,
        store=store,
        weight_mask=3 if grouped else 1,
        binaries=_takes_binaries(layer, node),
        channel_mask=2
        if node.get_type_name() != "MatMul"
        else 1 << (1 if layer.layer_type == "FullyConnected" else rank - 1),
        **chain.attributes(),
    )


def _takes_binaries(layer: LayerExecution, node: Node) -> bool:
    """The plugin has post-operations of its own for int8 convolutions without AVX-512, and for grouped ones."""
    if layer.layer_type != "Convolution":
        return True
    depthwise = node.get_type_name() == "GroupConvolution" and list(node.get_input_shape(1)[1:3]) == [1, 1]
    return "avx512" in layer.exec_type.lower() and (node.get_type_name() == "Convolution" or depthwise)


def _adjusted(step: Step) -> Step:
    """A FakeQuantize whose range has an integer zero point, as far as it can have one."""
    if not isinstance(step, FakeQuantize):
        return step
    try:
        moved = adjust(step.input_low, step.input_high, step.levels)
        return FakeQuantize(moved.low, moved.high, step.output_low, step.output_high, step.levels)
    except OvlptError:
        return step


def _paired(layers: Sequence[LayerExecution], nodes: Sequence[Node]) -> list[tuple[LayerExecution, Node | None]]:
    """Each layer with its operation: the one with a name of the layer; by their order where no name is left of it."""
    by_name = {name: node for node in nodes for name in _names(node)}
    found = [next((by_name[name] for name in layer.original_names if name in by_name), None) for layer in layers]
    unnamed = [at for at, node in enumerate(found) if node is None and layers[at].is_int8]
    rest = [
        node
        for node in nodes
        if not any(each is not None and each.get_instance_id() == node.get_instance_id() for each in found)
    ]
    if len(unnamed) == len(rest):
        for at, node in zip(unnamed, rest, strict=True):
            found[at] = node
    return list(zip(layers, found, strict=True))


def _names(node: Node) -> tuple[str, ...]:
    """The names that a layer can have of its operation: its own, or that of the operation it was fused into."""
    chain = epilogue(node)
    name = node.get_friendly_name()
    return name, given(name), *chain.names[:1]


def _lines(layers: Sequence[LayerExecution], lines: Sequence[str]) -> Iterator[str | None]:
    """The log line of each layer: the next one of its kind and precision; both are in the order of creation."""
    at = 0
    for layer in layers:
        fitting = next((later for later in range(at, len(lines)) if _fits(layer, lines[later])), None)
        at = at if fitting is None else fitting + 1
        yield None if fitting is None else lines[fitting]


def _fits(layer: LayerExecution, line: str) -> bool:
    fields = line.split(",")
    return (
        any(kind in fields for kind in _KINDS[layer.layer_type])
        and bool(re.search(r"src[:_](?:a:)?[us]8", line)) == layer.is_int8
    )


def _compiled(model: Model, stock: bool) -> tuple[list[LayerExecution], list[str]]:
    """The weighted layers of the model, compiled in a process of its own, and oneDNN's log of them."""
    environment = {**os.environ, "ONEDNN_VERBOSE": "profile_create" if RELEASE >= (2025, 0) else "2"}
    with tempfile.TemporaryDirectory() as folder:
        path, found = Path(folder, "model.xml"), Path(folder, "layers.json")
        openvino.save_model(model, path, compress_to_fp16=False)
        run = "from ovlpt.inspect import post_ops; post_ops.write_layers(*sys.argv[1:])"
        code = f"import sys; sys.path[:] = {sys.path!r}; {run}"
        command = [sys.executable, "-c", code, str(path), str(found), "stock" if stock else "ovlpt"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise InputError(f"the model cannot be compiled: {last_line(done.stderr)}")
        layers = [
            LayerExecution(**{**layer, "original_names": tuple(layer["original_names"])})
            for layer in json.loads(found.read_text())
        ]
    kinds = {kind for each in _KINDS.values() for kind in each}
    _, _, log = done.stdout.partition(_COMPILED_FROM_HERE)  # small networks ask the CPU before: not this model's layers
    lines = [line for line in log.splitlines() if line.startswith("onednn_verbose") and ",create" in line]
    return layers, [line for line in lines if kinds.intersection(line.split(","))]


def write_layers(path: str, found: str, lpt: str) -> None:
    """Compile the model at ``path``, write its weighted layers to ``found``, in order of creation.

    oneDNN's log goes to the output.
    """
    core = Core()
    model, off = (path, {}) if lpt == "stock" else (transform(path, core=core, serializable=False), LPT_OFF["CPU"])
    print(_COMPILED_FROM_HERE, flush=True)  # oneDNN flushes each line of its log
    compiled = core.compile_model(model, "CPU", {**PROPERTIES, **off})
    fields = LayerExecution.__slots__
    order = {
        node.get_friendly_name(): int(node.get_rt_info()["execOrder"].astype(str))
        for node in compiled.get_runtime_model().get_ops()
    }
    executed = sorted(execution_types(compiled), key=lambda layer: order[layer.name])
    layers = [{name: getattr(layer, name) for name in fields} for layer in executed if layer.layer_type in _KINDS]
    Path(found).write_text(json.dumps(layers))
