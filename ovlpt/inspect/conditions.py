"""What an operation with weights of a given model lacks for int8, each lack with the advice that mends it.

A walk over the model that was given, along everything that passes quantized data on. It finds all that is missing at once, where a
transformation stops at the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ovlpt.device.compile import compile_quantized
from ovlpt.device.execution_types import execution_types
from ovlpt.device.int8_layers import is_depthwise_over_three_axes
from ovlpt.device.properties import F32
from ovlpt.graph.constants import constant, is_constant_path, precision_of, same_operation
from ovlpt.graph.consumers import targets_of
from ovlpt.graph.dequantization import DEQUANTIZATION, read_dequantization
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import cell_obstacle, sources
from ovlpt.graph.shapes import shape_of
from ovlpt.graph.weights import folded_constant, varies_along
from ovlpt.inspect.advice import (
    Advice,
    QuantizeInput,
    QuantizeProbabilities,
    QuantizeWeights,
    Requantize,
    quantizer,
    real_interval,
)
from ovlpt.main.mat_mul import LONG
from ovlpt.openvino_api import Model, Node, Output, Type, opset1
from ovlpt.operations import OPERATIONS, RECURRENT
from ovlpt.operations.families import CONVOLUTIONS, DECONVOLUTIONS, REARRANGES
from ovlpt.precisions import INT4, INT8, REAL, is_low
from ovlpt.prerequisites.einsum import contracted_size
from ovlpt.trace import Reason

DATA, WEIGHTS = "data", "weights"
STATE = 1  # the input of a recurrent layer
_ATTENTION = "ScaledDotProductAttention"
_MULTIPLIES = frozenset(("MatMul", "Einsum"))  # of either input each may be weights
BECOME_PRODUCTS = frozenset((_ATTENTION, "Einsum"))  # operations that MatMuls are made of
_PRODUCTS = BECOME_PRODUCTS | {"MatMul"}
_JOINS = frozenset(("Concat", "Maximum", "Minimum"))  # need every input quantized
_GROUPS_OVER_THREE_AXES = 6  # axes of the weights
_LEVELS = 256  # of integers of 8 bits
_LARGEST_STRIDE = 3  # of a deconvolution in int8, along the last axis: `Deconvolution::canBeExecutedInInt8`


@dataclass(frozen=True, slots=True)
class Lack:
    """``where``: on the side of the data or of the weights. ``root``: the operation that lacks it."""

    where: str
    reason: Reason
    root: str
    advice: Advice | None


def lacks(node: Node) -> list[Lack]:
    """Of one operation of the given model with weights, those of the data first."""
    if node.get_type_name() == _ATTENTION:
        text = "nothing quantizes the result of its Softmax before the second MatMul"
        inner = Lack(
            DATA, Reason("no_fake_quantize", text), title(node), QuantizeProbabilities(node.get_friendly_name())
        )
        return [inner, *(lack for port in range(3) for lack in _of_data(node, port))]
    found = [lack for port in data_ports(node) for lack in _of_data(node, port)]
    return [*found, *_of_state(node), *_of_weights(node)]


def title(node: Node) -> str:
    return f"{node.get_type_name()} {node.get_friendly_name()}"


def data_ports(node: Node) -> list[int]:
    """The inputs of an operation with weights that have to be quantized activations."""
    if node.get_type_name() == _ATTENTION:
        return [0, 1, 2]
    if node.get_type_name() in _MULTIPLIES:
        values = enumerate(node.input_values())
        return [port for port, value in values if not is_constant_path(value.get_node())]
    return [0]


def weights_ports(node: Node) -> tuple[int, ...]:
    """The inputs of an operation with weights that hold them; of a product those that are constant."""
    if node.get_type_name() in _MULTIPLIES:
        return tuple(port for port in range(node.get_input_size()) if port not in data_ports(node))
    return RECURRENT.get(node.get_type_name(), (1,))


def quantize_input(node: Node, port: int, like: str | None = None) -> QuantizeInput | Requantize:
    """On that input, or before what only moves its data: a plugin fuses a FakeQuantize into the layer that it follows. One
    that is there, and that nothing else reads, gets another interval.
    """
    zero_point, signed = _takes_zero_point(node), _takes_signed(node, port)
    source = node.input_value(port).get_node()
    while source.get_type_name() in REARRANGES and _has_one_reader(source):
        node, port, source = source, 0, source.input_value(0).get_node()
    if source.get_type_name() == "FakeQuantize" and like is None and _has_one_reader(source):
        return Requantize(source.get_friendly_name(), signed=not zero_point)
    kind, name = node.get_type_name(), node.get_friendly_name()
    return QuantizeInput(kind, name, port, title(source), like, zero_point=zero_point, signed=signed)


def _has_one_reader(node: Node) -> bool:
    return len(node.output(0).get_target_inputs()) == 1


def _takes_zero_point(node: Node) -> bool:
    """Whether kernels take data with a zero point, which becomes a constant of the sums where the weights are constant."""
    if is_depthwise_over_three_axes(node):
        return False
    return node.get_type_name() in CONVOLUTIONS or (node.get_type_name() in _MULTIPLIES and data_ports(node) == [0])


def _takes_signed(node: Node, port: int) -> bool:
    """Whether an input of a MatMul of activations, or computed weights, has to be i8."""
    return port in (1, 2) if node.get_type_name() == _ATTENTION else port == 1 and node.get_type_name() not in _JOINS


def kernel_limit(node: Node, layer: str | None) -> Reason | None:
    """Why no quantization gives an operation an int8 kernel. ``layer``: the one it was executed as."""
    if node.get_type_name() in RECURRENT:
        return cell_obstacle(node)
    if layer is None or not layer.startswith("Deconvolution "):
        return None
    if node.get_type_name() == "GroupConvolutionBackpropData":
        return _limit_of_groups(node)
    stride = node.get_attributes()["strides"][-1]
    if stride > _LARGEST_STRIDE:
        text = f"its stride is {stride}, and the int8 kernels of the plugin take strides up to {_LARGEST_STRIDE}"
        return Reason("no_kernel", text)
    return None


def _limit_of_groups(node: Node) -> Reason | None:
    """Of a transposed convolution in groups."""
    if node.get_input_partial_shape(0).is_dynamic:
        text = "it is in groups and has open sizes, and the plugin's int8 kernels of transposed groups take fixed sizes"
        return Reason("no_kernel", text)
    weights = tuple(shape_of(node.input_value(1)) or ())
    if weights[1:3] == (1, 1) and len(weights) == _GROUPS_OVER_THREE_AXES:
        return Reason("no_kernel", "it is by channel over three axes, for which the plugin has no int8 kernel")
    if weights and not _has_kernel_of_groups(node):
        text = f"it is in groups of {weights[1]} to {weights[2]} channels, for which the plugin has no int8 kernel on this CPU"
        return Reason("no_kernel", text)
    return None


def _has_kernel_of_groups(node: Node) -> bool:
    """Which numbers of channels have one depends on the instruction set, so a model of such a layer alone is compiled,
    quantized as kernels like best.
    """
    sizes = [folded_constant(value) for value in node.input_values()[2:]]
    if any(size is None for size in sizes):
        return True
    interval = [constant(end) for end in (0, 2.55, 0, 2.55)]
    data = opset1.parameter(list(shape_of(node.input_value(0))), Type.f32)
    integers = constant(np.ones(shape_of(node.input_value(1)), np.int8), "i8")
    inputs = [
        opset1.fake_quantize(data, *interval, 256),
        opset1.multiply(opset1.convert(integers, "f32"), constant(0.01)),
        *(opset1.constant(size) for size in sizes),
    ]
    layer = opset1.relu(same_operation(node, [each.output(0) for each in inputs]))
    compiled = compile_quantized(Model([opset1.result(layer)], [data], "layer"), "CPU", F32)
    return any(each.layer_type == "Deconvolution" and each.is_int8 for each in execution_types(compiled))


def _of_data(node: Node, port: int) -> Iterator[Lack]:
    """One walk up an input: to a FakeQuantize that fits, or to where there is none."""
    sources = list(_sources(node, port, set()))
    missing = [(reader, at) for reader, at, quantize in sources if quantize is None]
    found = [quantize for *_, quantize in sources if quantize is not None]
    if not found:
        source = title(node.input_value(port).get_node())
        text = f"nothing quantizes input {port}, which {source} computes"
        yield Lack(DATA, Reason("no_fake_quantize", text), title(node), quantize_input(node, port))
        return
    like = next((each.get_friendly_name() for each in found if each.get_type_name() == "FakeQuantize"), None)
    for reader, at in missing:
        text = f"input {at} of {title(reader)} is not quantized, unlike its others"
        yield Lack(DATA, Reason("not_quantized", text), title(reader), quantize_input(reader, at, like))
    for quantize in filter(quantizer, found):
        if (reason := _unfit(node, port, quantize)) is None:
            yield from _of_other_readers(node, port, quantize)
        else:
            signed = node.get_type_name() in DECONVOLUTIONS | _PRODUCTS or is_depthwise_over_three_axes(node)
            again: Advice = Requantize(quantize.get_friendly_name(), signed)
            if signed and not _takes_zero_point(node) and _is_read_as_unsigned(quantize):
                again = quantize_input(node, port)
            yield Lack(DATA, reason, title(quantize), again)


def _is_read_as_unsigned(quantize: Node) -> bool:
    """Whether a convolution reads it, too, whose kernels ask for u8 with a zero point, or a MatMul of weights, which is one
    on some CPUs: what is quantized once for both is not i8, around zero or not.
    """
    return any(port == 0 and _takes_zero_point(reader) for reader, port in _readers(quantize))


def _of_other_readers(node: Node, port: int, quantize: Node) -> Iterator[Lack]:
    """An interval around zero suits a product as i8, and a convolution as u8 with a zero point; one quantization for both
    does not suit the product, unless it is right before what takes nothing but i8: that is quantized anew.
    """
    ends, name = real_interval(quantize), quantize.get_friendly_name()
    if ends is None or not _is_product(node, port):
        return
    is_signed, is_first = bool((ends[0] < 0).any()), not _takes_signed(node, port)
    is_direct = node.input_value(port).get_node().get_instance_id() == quantize.get_instance_id()
    for reader, at in _readers(quantize):
        if at != 0 or reader.get_type_name() not in CONVOLUTIONS:
            continue
        if is_first and is_signed:
            text = f"{title(reader)} reads {name} as well, as u8 with a zero point, which this MatMul does not take"
            yield Lack(DATA, Reason("zero_point", text), title(quantize), quantize_input(node, port))
            return
        if not is_first and not is_direct:
            text = f"{title(reader)} reads {name} as well, as u8, and this MatMul takes only i8"
            yield Lack(DATA, Reason("consumer_forbids", text), title(quantize), quantize_input(node, port))
            return


def _readers(quantize: Node) -> Iterator[tuple[Node, int]]:
    """Operations that read what it quantizes, each with the input; what hands it on is one, too."""
    pending = [quantize]
    while pending:
        for target in (each for output in pending.pop().outputs() for each in targets_of(output)):
            yield target.get_node(), target.get_index()
            pending += [target.get_node()] if _hands_on(target.get_node()) else []


def _is_product(node: Node, port: int) -> bool:
    """Whether an input is one of a product whose kernels take no zero point of it."""
    return (
        node.get_type_name() in _PRODUCTS
        and data_ports(node) not in ([0], [])
        and port in data_ports(node)
        and _summed(node, port) < LONG
    )


def _of_state(node: Node) -> Iterator[Lack]:
    """Of the hidden state that a recurrent layer begins with."""
    if node.get_type_name() not in RECURRENT:
        return
    for value in sources(node.input_value(STATE)):
        source = value.get_node()
        if (
            folded_constant(value) is None
            and source.get_type_name() != "FakeQuantize"
            and not _is_dequantization(source)
        ):
            text = f"its initial state, which {title(source)} gives, is neither constant nor quantized"
            yield Lack(DATA, Reason("state_not_quantized", text), title(node), quantize_input(node, STATE))
            return


def _sources(node: Node, port: int, seen: set[int]) -> Iterator[tuple[Node, int, Node | None]]:
    """Each end of the walk: the operation, its input, and what quantizes that; None for nothing."""
    source = node.input_value(port).get_node()
    if source.get_type_name() == "FakeQuantize" or _is_dequantization(source):
        yield node, port, source
    elif source.get_type_name() in _JOINS:
        for each in range(source.get_input_size()):
            value = source.input_value(each)
            if is_constant_path(value.get_node()):
                if source.get_type_name() == "Concat" and not _is_quantized(value):
                    yield source, each, None
                continue
            for reader, at, quantize in _sources(source, each, seen):
                is_branch = quantize is None and reader.get_type_name() not in _JOINS
                yield (source, each, None) if is_branch else (reader, at, quantize)  # the whole branch is float
    elif _hands_on(source):
        yield from _sources(source, 0, seen)
    else:
        yield node, port, None


def _hands_on(node: Node) -> bool:
    row = OPERATIONS.get(node.get_type_name())
    if row is None or not node.get_input_size() or not row.has_rule:
        return False
    return row.preserves_precision(node.get_attributes()) and node.get_type_name() != "Clamp"


def _is_dequantization(node: Node) -> bool:
    """Whether it dequantizes stored integers, or scales a mask of booleans, which are stored as integers."""
    for depth in range(3):
        if node.get_type_name() not in DEQUANTIZATION:
            return False
        value = node.input_value(0)
        stored = precision_of(value)
        if node.get_type_name() == "Convert" and (is_low(stored) or (depth > 0 and stored == "boolean")):
            return True
        node = value.get_node()
    return False


def _unfit(node: Node, port: int, quantize: Node) -> Reason | None:
    """What keeps a FakeQuantize of activations out of the kernels of ``node``."""
    details, name = QuantizationDetails.of(quantizer(quantize)), quantize.get_friendly_name()
    ends = real_interval(quantize)
    if details is None or ends is None:
        return None
    kind = node.get_type_name()
    is_recurrent = kind in RECURRENT  # which takes any grid of 8 bits
    if details.levels not in (255, 256) and not (is_recurrent and details.levels < 255):
        return Reason("levels", f"{name} has {details.levels} levels, but the kernels take 8-bit integers")
    if ends[0].size > 1 or ends[1].size > 1:
        if kind.startswith("GroupConvolution") and kind not in DECONVOLUTIONS:
            return None
        return Reason("per_channel_activations", f"{name} has one interval per channel, and {kind} sums over channels")
    low, high = (float(end.flat[0]) for end in ends)
    if (low > 0 or high < 0) and not is_recurrent:
        return Reason("zero_point_range", f"the interval [{low:g}, {high:g}] of {name} does not contain zero")
    is_product = _is_product(node, port)
    takes_unsigned = low == 0 and not (is_product and _takes_signed(node, port))
    is_signed = kind in DECONVOLUTIONS or is_product or is_depthwise_over_three_axes(node)
    if is_signed and not takes_unsigned and not _is_around_zero(*ends, details.levels):
        what = "a MatMul of two activations" if len(data_ports(node)) > 1 else kind
        what = f"{what} by channel over three axes" if is_depthwise_over_three_axes(node) else what
        if low == 0:
            text = f"{name} is quantized to u8 on [0, {high:g}], and {what} takes i8 as input {port}"
            return Reason("zero_point", text)
        return Reason(
            "zero_point", f"{name} has a zero point on [{low:g}, {high:g}], for which {what} has no int8 kernel"
        )
    return None


def _summed(node: Node, port: int) -> int:
    """How many products a MatMul sums, or that of an attention which reads ``port``; 0 where that is not known."""
    if node.get_type_name() == "Einsum":
        return contracted_size(node)
    is_attention = node.get_type_name() == _ATTENTION
    shape = node.get_input_partial_shape(int(is_attention and port == 2))
    if shape.rank.is_dynamic or shape.rank.get_length() < 2:
        return 0
    before_last = port == 2 if is_attention else node.get_attributes()["transpose_a"]
    size = shape[shape.rank.get_length() - (2 if before_last else 1)]
    return size.get_length() if size.is_static else 0


def _of_weights(node: Node) -> Iterator[Lack]:
    kind, name, ports = node.get_type_name(), node.get_friendly_name(), weights_ports(node)
    if kind not in (*RECURRENT, *_MULTIPLIES) and (kind not in OPERATIONS or OPERATIONS[kind].kind != "weighted"):
        return
    real = [port for port in ports if not _is_quantized(node.input_value(port))]
    if any(not is_constant_path(node.input_value(port).get_node()) for port in real):
        reason = Reason("dynamic_weights", "its weights are computed from data, and nothing quantizes them")
        yield Lack(WEIGHTS, reason, title(node), None if kind in RECURRENT else quantize_input(node, 1))
    elif real:
        stored = {_stored_precision(node.input_value(port)) for port in real}
        if stored.isdisjoint(REAL):
            text = f"its weights are stored in {' and '.join(sorted(stored))}, and int8 kernels multiply 8-bit integers"
            reason = Reason("weights_precision", text)
        else:
            reason = Reason("weights_not_quantized", "its weights are not quantized")
        yield Lack(WEIGHTS, reason, title(node), QuantizeWeights(kind, name, tuple(real)))
    elif kind in RECURRENT and (
        moved := [port for port in ports if not _reads_grid(node.input_value(port).get_node())]
    ):
        text = "its weights are rearranged after their dequantization, and the kernels read integers"
        yield Lack(WEIGHTS, Reason("weights_grid", text), title(node), QuantizeWeights(kind, name, tuple(moved)))
    elif ports and kind not in RECURRENT and (reason := _unfit_weights(node, ports[0])) is not None:
        yield Lack(WEIGHTS, reason, title(node), QuantizeWeights(kind, name, ports))


def _reads_grid(source: Node) -> bool:
    """Whether weights come right from a FakeQuantize or a dequantization."""
    return source.get_type_name() == "FakeQuantize" or _is_dequantization(source)


def _unfit_weights(node: Node, port: int) -> Reason | None:
    """What keeps the FakeQuantize of weights out of the kernels; those of a MatMul that come first are rows."""
    quantize = node.input_value(port).get_node()
    details = QuantizationDetails.of(quantize) if quantize.get_type_name() == "FakeQuantize" else None
    if details is None:
        return _in_blocks(quantize)
    if details.levels > _LEVELS:
        return Reason(
            "weights_levels", f"its weights have {details.levels} levels, but the kernels take 8-bit integers"
        )
    kind, scales = node.get_type_name(), details.output_high
    if kind in DECONVOLUTIONS or port == 0:
        if not _is_around_zero(details.output_low, scales, details.levels):
            return Reason("weights_zero_point", f"its weights have a zero point, for which {kind} has no int8 kernel")
        summed = -2 if node.get_attributes().get("transpose_a") else -1
        if kind == "MatMul" and scales.ndim >= -summed and scales.shape[summed] > 1:
            return Reason("contracted_scale", "its weights have one scale per column, and the columns are summed")
    axes, shape = OPERATIONS[kind].weights_axes if kind in OPERATIONS else (), shape_of(node.input_value(port))
    if axes and shape is not None and not varies_along(scales, len(shape), axes):
        text = (
            f"the scale of its weights has the shape {list(scales.shape)}; it may vary along the output channels only"
        )
        return Reason("weights_granularity", text)
    return None


def _in_blocks(reshape: Node) -> Reason | None:
    """Of weights whose scale differs within an output channel: a Reshape joins the axis of the blocks with that of the inputs."""
    while reshape.get_type_name() == "Convert":
        reshape = reshape.input_value(0).get_node()
    if reshape.get_type_name() != "Reshape":
        return None
    value, shape = reshape.input_value(0), shape_of(reshape.output(0))
    scale, before = _scale_of(value), shape_of(value)
    if scale is None or shape is None or before is None or len(before) <= len(shape):
        return None
    if varies_along(scale, len(before), (0,)):
        return None
    text = (
        f"its weights have a scale for each {before[-1]} of their elements; it may vary along the output channels only"
    )
    return Reason("weights_granularity", text)


def _scale_of(value: Output) -> np.ndarray | None:
    """That of a dequantization, or as an interval has it."""
    if value.get_node().get_type_name() != "FakeQuantize":
        return read_dequantization(value).scale
    details = QuantizationDetails.of(value.get_node())
    return None if details is None else details.output_high


def _is_around_zero(low: np.ndarray, high: np.ndarray, levels: int) -> bool:
    """Whether i8 holds the values without a zero point."""
    width = np.maximum(high - low, np.finfo(np.float32).tiny)
    return bool(np.allclose(-low * (levels - 1) / width, levels // 2, atol=0.01))


def _is_quantized(value: Output) -> bool:
    """Whether weights come from a FakeQuantize or from integers of 8 bits, or of 4, which become such."""
    return _stored_precision(value) in ("FakeQuantize", *INT8, *INT4)


def _stored_precision(value: Output) -> str:
    """The element type in which weights are stored, or "FakeQuantize" where one quantizes them."""
    node = value.get_node()
    while node.get_input_size():
        if node.get_type_name() == "FakeQuantize":
            return "FakeQuantize"
        node = node.input_value(0).get_node()
    return precision_of(node.output(0))
