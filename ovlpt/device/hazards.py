"""What follows an int8 layer, read from the graph, and where the CPU plugin computes something else.

    relu(x) * s, s < 0          the plugin moves s before the relu, into an int8 layer's scale
    clip, then FakeQuantize     with ranges apart: the one clip that the plugin makes of them turns around
    FakeQuantize to odd integers    after a round the plugin moves the shift before it: ties come out one level off
    LSTM, GRU on u8 data        the hidden state is stored as the data is: clipped where its interval ends

Source: `ovlpt.fake_quantize.hazards`; of recurrent layers oneDNN's documentation ("RNN", int8), where state and data
share one scale and shift. Releases 2024.6 to 2026.4 compute so. `ovlpt.canonicalize.recurrent_grid` leaves none of the
last kind.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import asdict, dataclass
from itertools import takewhile

import numpy as np

from ovlpt.device.int8_layers import is_int8_layer
from ovlpt.fake_quantize import hazards as chains
from ovlpt.fake_quantize.chain import Add, Clip, Eltwise, Multiply, Relu, Sum
from ovlpt.fake_quantize.composer import Step
from ovlpt.fake_quantize.forms import FakeQuantize
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant_above, precision_of
from ovlpt.graph.dequantization import dequantization_above
from ovlpt.graph.names import ORIGINAL_SUFFIX, given, is_dequantization
from ovlpt.graph.recurrent import quantized_weights, state_interval
from ovlpt.openvino_api import RELEASE, Model, Node
from ovlpt.operations import RECURRENT
from ovlpt.trace import OvlptError, Reason

_FUNCTIONS = {
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Abs": "abs",
    "Swish": "swish",
    "HSwish": "hswish",
    "HSigmoid": "hsigmoid",
    "Mish": "mish",
    "SoftPlus": "softplus",
}


@dataclass(frozen=True, eq=False)
class Epilogue:
    """What follows a layer: its dequantization, whether it has a bias, and the steps after these.

    ``names``: of the operations, dequantization and bias included. ``unread``: the name of the operation that ended the
    reading although the plugin holds it in the layer, None otherwise.
    """

    dequantization: np.ndarray | None
    bias: bool
    steps: tuple[Step, ...]
    names: tuple[str, ...]
    unread: str | None = None

    def attributes(self) -> dict[str, object]:
        """Arguments of `ovlpt.fake_quantize.composer.Composer`."""
        return {"bias": self.bias, "dequantization": self.dequantization}


@dataclass(frozen=True, slots=True)
class Hazard:
    """One layer whose numbers the plugin changes, and why; ``avoided``: `ovlpt.compile_model` keeps them right."""

    layer: str
    reason: Reason
    avoided: bool

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def epilogue(node: Node, held: Container[str] | None = None) -> Epilogue:
    """The operations after a layer, each the only consumer of the one before.

    ``held``: names of those that the plugin made part of the layer; without, as far as they can be read.
    """
    read, unread, data = [], None, node
    while len(targets := list(data.output(0).get_target_inputs())) == 1:
        data = targets[0].get_node()
        if data.get_type_name() == "Convert" and "f64" in (
            precision_of(data.input_value(0)),
            precision_of(data.output(0)),
        ):
            continue  # around what the plugin computes in f32
        if (step := _step(data, targets[0].get_index(), _channels(node))) is None:
            unread = data.get_friendly_name()
            break
        # in f64 the Convert back has the operation's name
        read.append((data.get_friendly_name().removesuffix(ORIGINAL_SUFFIX), data.get_type_name(), step))
    if held is not None:
        unread = unread if unread in held else None
        # a dequantization of the plugin's own LPT has another name, a clip that a FakeQuantize swallows none
        last = max((at for at, (name, *_) in enumerate(read) if name in held), default=-1)
        own = given(node.get_friendly_name())
        dequantized = sum(1 for _ in takewhile(lambda each: is_dequantization(each[0]) or each[0] == own, read))
        read = read[: max(last + 1, dequantized)]
    # the plugin's FullyConnected has no bias after its scale since 2025
    takes_bias = node.get_type_name() != "MatMul" or RELEASE < (2025, 0)
    # and takes the second axis for that of the channels when it makes a scale per channel part of a FakeQuantize
    rank = node.get_output_partial_shape(0).rank
    channels_last = node.get_type_name() == "MatMul" and (rank.is_dynamic or rank.get_length() > 2)
    dequantization, bias, kept = None, False, True
    steps: list[Step] = []
    for name, kind, step in read:
        match step:
            case Multiply(scale) if dequantization is None and not bias and not steps:
                dequantization = scale
            case Add(shift) if (
                kind == "Add" and takes_bias and not bias and not steps and shift.size == _channels(node)
            ):
                bias = True
            case _:
                if isinstance(step, FakeQuantize) and channels_last and kept:
                    steps.append(Add(0))  # nothing, but it keeps a scale per channel out of the FakeQuantize
                steps.append(step)
        kept = held is None or name in held  # else common optimizations have made it part of the FakeQuantize
    return Epilogue(dequantization, bias, tuple(steps), tuple(name for name, *_ in read), unread)


def _channels(node: Node) -> int | None:
    shape = node.get_output_partial_shape(0)
    if shape.rank.is_dynamic:
        return None
    rank = shape.rank.get_length()
    axis = rank - 1 if node.get_type_name() == "MatMul" else 1
    # two vectors give one number, and a Reshape that makes a vector of a MatMul's result has its name
    return None if not 0 <= axis < rank or shape[axis].is_dynamic else shape[axis].get_length()


def _step(node: Node, port: int, channels: int | None) -> Step | None:
    """The operation as a basic one; None for what no layer holds, or with values that are not per channel."""
    constants = [constant_above(node.input_value(at)) for at in range(node.get_input_size()) if at != port]
    if any(each is not None and each.size not in (1, channels) for each in constants):
        return None
    kind = node.get_type_name()
    known = all(each is not None for each in constants)
    match kind, constants:
        case "Add", [None]:
            return Sum()
        case "Multiply", [scale] if known:
            return Multiply(scale)
        case "Add", [shift] if known:
            return Add(shift)
        case "Subtract", [shift] if known and port == 0:
            return Add(-shift)
        case "FakeQuantize", [il, ih, ol, oh] if known:
            try:
                return FakeQuantize(il, ih, ol, oh, node.get_attributes()["levels"])
            except OvlptError:
                return None
        case "Clamp", []:
            attributes = node.get_attributes()
            return Clip(attributes["min"], attributes["max"])
        case "Relu", []:
            return Relu()
        case "PRelu" | "PReLU", [slope] if known:
            return Relu(slope)
        case "Elu", []:
            return Eltwise("elu", node.get_attributes()["alpha"])
        case "Gelu", [] if str(node.get_attributes().get("approximation_mode", "ERF")).upper() == "ERF":
            return Eltwise("gelu_erf")
        case "Swish", [] | [_] if known:
            return Eltwise("swish", float(constants[0].reshape(-1)[0]) if constants else 1.0)
        case _, [] if kind in _FUNCTIONS:
            return Eltwise(_FUNCTIONS[kind])
    return None


def hazards(model: Model) -> list[Hazard]:
    """The hazards of a model that `LowPrecision` has transformed, in the order of its layers."""
    found = []
    for node in all_nodes(model):
        if is_int8_layer(node):
            chain = epilogue(node)
            for reason in chains.hazards(chain.steps, int8=True, **chain.attributes()):
                found.append(Hazard(node.get_friendly_name(), reason, reason.code == "negative_scale_after_relu"))
        elif node.get_type_name() in RECURRENT and (reason := _clipped_state(node)) is not None:
            found.append(Hazard(node.get_friendly_name(), reason, False))
    return found


def _clipped_state(node: Node) -> Reason | None:
    """Where the interval of a recurrent layer's u8 data does not hold its hidden state."""
    data = dequantization_above(node)
    if data.data_precision != "u8" or data.scale is None or not quantized_weights(node):
        return None
    shift = 0 if data.zero_point is None else data.zero_point
    low, high = (float(edge((level - shift) * data.scale)) for edge, level in ((np.max, 0), (np.min, 255)))
    step, state = float(np.max(data.scale)), state_interval(node)
    if low <= state[0] + step and high >= state[1] - step:
        return None
    return Reason(
        "clipped_state",
        f"its hidden state is stored on the grid of its data, [{low:g}, {high:g}], and clipped outside it",
    )
