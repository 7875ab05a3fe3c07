"""What a plugin does to any model before its own LPT, from Python.

Most of it is OpenVINO's MOC transformations. They fold constants, and would fold quantized weights into floats; so the
stored integers are passed to them as inputs, which nothing folds, and put back afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from openvino._offline_transformations import apply_moc_transformations

from ovlpt.graph.attention import of_mask
from ovlpt.graph.bodies import all_nodes, kinds_of, operations_of, with_bodies
from ovlpt.graph.constants import constant, constant_above, is_constant_path, meets, precision_of, values_of
from ovlpt.graph.grafting import graft
from ovlpt.graph.mat_mul import absorbed_transposes
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.recurrent import in_both_directions
from ovlpt.graph.replaced import detach
from ovlpt.layer_transformation import LayerTransformation, ModelTransformation, consumers_of, replace_output, shape_of
from ovlpt.low_precision import BEFORE_LPT, as_defined, check_names
from ovlpt.openvino_api import (
    RELEASE,
    Constant,
    ConstantFolding,
    GraphRewrite,
    Manager,
    Model,
    Node,
    NodeFactory,
    Output,
    as_model,
    opset1,
    opset8,
    opset13,
)
from ovlpt.operations.families import RESHAPES
from ovlpt.own_transformations import Given, resolved
from ovlpt.precisions import INT4, INT8, REAL
from ovlpt.prerequisites.convert_precision import ConvertPrecision
from ovlpt.prerequisites.convert_quantize_dequantize import ConvertQuantizeDequantize
from ovlpt.prerequisites.einsum import decomposed_einsum
from ovlpt.prerequisites.interpolate_layout import interpolated_in_nchw, quantized_before_transpose, transposed_alone
from ovlpt.prerequisites.pull_reshape_through_dequantization import reshaped_with
from ovlpt.prerequisites.recurrent_cells import decomposed_gru_cell, decomposed_rnn_cell

_ATTENTION = "ScaledDotProductAttention"
_STORED = frozenset((*INT8, *INT4))


class CommonOptimizations(ModelTransformation):
    """MOC transformations with the quantized weights kept, then the operation versions that LPT has rules for.

    Among the latter are the passes of plugins' first step that take callbacks, `BEFORE_LPT`.

    ``kernels``: per operation, whether the plugin executes a node as it is; other nodes are decomposed, as the plugin itself
    would do. ``pass_config``, one of the ``settings``, may be that of `LowPrecision`, with names of the custom
    transformations in ``main``. ``as_defined``: first what `LowPrecision` does first and common optimizations would hide from
    it (`BEFORE_COMMON_OPTIMIZATIONS`); False for what a plugin does. Raises `InputError` for a name in ``pass_config`` that
    no pass has.
    """

    def __init__(
        self,
        kernels: Mapping[str, Callable[[Node], bool]] = MappingProxyType({}),
        main: Sequence[Given] = (),
        as_defined: bool = True,
        **settings,
    ):
        super().__init__(**settings)
        self.kernels, self.as_defined = kernels, as_defined
        check_names(self.pass_config, resolved(main))

    def run_on_model(self, model: Model) -> bool:
        model = as_model(model)
        if self.as_defined:
            as_defined(model, **self.settings())
        ConvertPrecision(**self.settings()).run_on_model(model)
        settled, whole = self._prepare(model)
        _optimize(model)
        kinds = kinds_of(model)
        if any(step.is_shown(kinds) for step in BEFORE_LPT):  # of plugins before their LPT, which settings know by name
            self._rewrite(model, BEFORE_LPT)
        if _ATTENTION in kinds:
            self._decompose_attentions(model, whole)
            kinds = kinds_of(model)
        if settled or not _CONVERTED.isdisjoint(kinds):
            self._convert(model, settled)
        if "Transpose" in kinds:
            for node in all_nodes(model):
                if node.get_type_name() == "FakeQuantize":
                    quantized_before_transpose(node)
        if "Interpolate" in kinds:
            for node in all_nodes(model):
                if node.get_type_name() == "Interpolate" and node.get_type_info().version_id == "opset4":
                    interpolated_in_nchw(node)
        model.validate_nodes_and_infer_types()
        return True

    def _prepare(self, model: Model) -> tuple[dict[str, tuple[int | None, ...]], set[str]]:
        """What MOC transformations would hide is changed before them; what has to be known of the model after them, as
        `_settled_by_broadcast` and `_decompose_attentions` have it.
        """
        operations = operations_of(model)
        _store_masks(operations)
        kinds = {kind for _, kind in operations}
        if not _DECOMPOSED.keys().isdisjoint(kinds):
            self._decompose(operations)  # before: what weights pass through goes into them
            operations = operations_of(model)
            kinds = {kind for _, kind in operations}
        if "Transpose" in kinds:
            for node, kind in operations:
                if kind in RESHAPES:
                    transposed_alone(node)
            del operations
            if RELEASE < (2025, 4):  # MOC moves the Transpose into a pair first
                self._rewrite(model, [ConvertQuantizeDequantize])
        settled = _settled_by_broadcast(model) if "Broadcast" in kinds else {}
        return settled, {node.get_friendly_name() for node in _attentions(model)} if _ATTENTION in kinds else set()

    def _decompose(self, operations: Iterable[tuple[Node, str]]) -> None:
        for node, kind in operations:
            if kind in _DECOMPOSED and not self._is_kernel(node):
                _replace(node, _DECOMPOSED[kind](node))

    @staticmethod
    def _decompose_attentions(model: Model, whole: Container[str]) -> None:
        """``whole``: the names of those that were given so."""
        for node in _attentions(model):
            # an attention that was MatMuls stays so: for a fused one the plugin would store the cache in 8 bits of its
            # own
            is_given = node.get_friendly_name() in whole
            _replace(node, without_even_mask(node) if is_given else decomposed_attention(node))

    def _convert(self, model: Model, settled: Mapping[str, tuple[int | None, ...]]) -> None:
        """To the versions of operations that LPT has rules for. ``settled``: as `_settled_by_broadcast` has it."""
        for node in all_nodes(model):
            kind = node.get_type_name()
            shape = settled.get(node.get_friendly_name()) if kind == "Broadcast" else None
            if shape is not None and shape != shape_of(node.output(0)):
                node.input(1).replace_source_output(_with_sizes(node.input_value(1), shape))
            convert = _CONVERSIONS.get((kind, node.get_type_info().version_id)) if kind in _CONVERTED else None
            if convert and not self._is_kernel(node):
                _replace(node, convert(node))

    def _rewrite(self, model: Model, kinds: Iterable[type[LayerTransformation]]) -> None:
        rewrite = GraphRewrite()
        for kind in kinds:
            rewrite.add_matcher(kind(**self.settings()))
        manager = Manager()
        manager.register_pass(rewrite)
        manager.run_passes(model)

    def _is_kernel(self, node: Node) -> bool:
        kind = node.get_type_name()
        return kind in self.kernels and self.kernels[kind](node)


def _store_masks(operations: Iterable[tuple[Node, str]]) -> None:
    """Booleans that become real numbers are integers of 8 bits before, as the CPU plugin stores them: a dequantization."""
    for node, kind in operations:
        if kind != "Convert" or precision_of(node.input_value(0)) != "boolean":
            continue
        if precision_of(node.output(0)) in REAL:
            node.input(0).replace_source_output(opset1.convert(node.input_value(0), "u8").output(0))


def _attentions(model: Model) -> list[Node]:
    return [node for node in all_nodes(model) if node.get_type_name() == _ATTENTION]


def _replace(node: Node, new: Node | None) -> None:
    if new is not None:
        new.set_friendly_name(node.get_friendly_name())
        replace_output(node.output(0), new.output(0))
        detach(node)


def _settled_by_broadcast(model: Model) -> dict[str, tuple[int | None, ...]]:
    """The shapes of what reads a Broadcast that settles dynamic sizes, by name; None where a size stays open.

    A Broadcast that moves after such an operation takes its name, and sizes that are known only when it runs.
    """
    readers = (
        target.get_node()
        for node in all_nodes(model)
        if node.get_type_name() == "Broadcast" and node.get_input_partial_shape(0).is_dynamic
        for target in node.output(0).get_target_inputs()
        if target.get_node().get_type_name() not in ("Broadcast", "Result")
    )
    return {each.get_friendly_name(): shape for each in readers if (shape := shape_of(each.output(0))) is not None}


def _with_sizes(target: Output, shape: tuple[int | None, ...]) -> Output:
    """The target of a Broadcast to a shape of which some sizes are known."""
    if None not in shape:
        return constant(np.array(shape), "i64").output(0)
    sizes = [
        opset8.gather(target, constant(np.array([axis]), "i64"), constant(np.array(0), "i64"))
        if size is None
        else constant(np.array([size]), precision_of(target))
        for axis, size in enumerate(shape)
    ]
    return opset1.concat(sizes, 0).output(0)


def _optimize(model: Model) -> None:
    """MOC transformations, on a copy: they also count replaced nodes that Python still holds
    (`ovlpt.graph.replaced`).
    """
    models = list(with_bodies(model))
    for each in models:
        fold_stored_integers(each)
    pinned = [_pin_quantized_constants(each) for each in models]
    for result in model.get_results():
        result.validate_and_infer_types()  # else 2024.6 gives a copy the names of what an output was before
    optimized = model.clone()
    apply_moc_transformations(optimized, True)
    stored = {parameter.get_friendly_name(): constant for pairs in pinned for parameter, constant in pairs}
    for each in with_bodies(optimized):
        for parameter in each.get_parameters():
            if (found := stored.get(parameter.get_friendly_name())) is not None:
                replace_output(parameter.output(0), found.output(0))
                each.remove_parameter(parameter)
    for parameter, _ in pinned[-1]:
        model.remove_parameter(parameter)
    graft(model, optimized)


def fold_stored_integers(model: Model) -> None:
    """What is computed from stored integers alone, as the Clip of weights in QCDQ files, is stored as its result.

    Else such weights are folded into floats, or stay computed: OpenVINO itself does not fold bounds of 8-bit integers.
    """
    pending = [node for node in model.get_ops() if isinstance(node, Constant) and _is_stored_integer(node)]
    for node in pending:
        for target in node.output(0).get_target_inputs():
            reader = target.get_node()
            if reader.get_type_name() != "Convert" and _is_stored_integer(reader) and _is_given(reader):
                _replace(reader, result := _computed(reader))
                if result is not None:
                    pending.append(result)


def _is_given(node: Node) -> bool:
    return all(isinstance(value.get_node(), Constant) for value in node.input_values())


def _computed(node: Node) -> Node | None:
    """The value of a node of constants, as a Constant; None where nothing computes it."""
    kind, inputs = node.get_type_name(), [values_of(value.get_node()) for value in node.input_values()]
    if kind in _BOUNDS:
        return constant(_BOUNDS[kind](*inputs), precision_of(node.output(0)))
    if kind == "Clamp":
        limits = node.get_attributes()
        return constant(np.clip(inputs[0], limits["min"], limits["max"]), precision_of(node.output(0)))
    folded = Model([opset1.result(node.output(0))], [], "stored integers")
    manager = Manager()
    manager.register_pass(ConstantFolding())
    manager.run_passes(folded)
    result = folded.get_results()[0].input_value(0).get_node()
    return result if isinstance(result, Constant) else None


_BOUNDS = {"Maximum": np.maximum, "Minimum": np.minimum}


def _is_stored_integer(node: Node) -> bool:
    return node.get_output_size() > 0 and node.get_output_element_type(0).get_type_name() in _STORED


def _pin_quantized_constants(model: Model) -> list[tuple[Node, Node]]:
    """Replace integer constants that start a dequantization by Parameters."""
    stored = [node for node in model.get_ops() if _is_quantized_data(node)]  # all are found before any is replaced
    pinned = []
    for node in stored:
        parameter = opset1.parameter(node.get_output_shape(0), node.get_output_element_type(0))
        for target in node.output(0).get_target_inputs():
            target.replace_source_output(parameter.output(0))
        pinned.append((parameter, node))
    model.add_parameters([parameter for parameter, _ in pinned])
    return pinned


def _is_quantized_data(node: Node) -> bool:
    if not isinstance(node, Constant) or not _is_stored_integer(node):
        return False
    targets = node.output(0).get_target_inputs()
    return bool(targets) and all(_starts_dequantization(target.get_node()) for target in targets)


def _starts_dequantization(convert: Node) -> bool:
    """A Convert of quantized data; that of a zero point is read by port 1 of a Subtract of data that is not stored."""
    if convert.get_type_name() != "Convert":
        return False
    for target in _readers_of(convert.output(0)):
        reader = target.get_node()
        if (
            reader.get_type_name() == "Subtract"
            and target.get_index() == 1
            and not _is_stored(reader.input_value(0).get_node())
        ):
            return False
    return True


def _readers_of(value: Output) -> Iterator[Any]:
    """What reads a value, Reshapes and the like between."""
    pending = [value]
    while pending:
        for target in pending.pop().get_target_inputs():
            if target.get_node().get_type_name() in RESHAPES:
                pending.append(target.get_node().output(0))
            else:
                yield target


def _is_stored(node: Node) -> bool:
    """Whether folding would give a constant; a FakeQuantize of one is not folded, and stands for it."""
    return is_constant_path(node) and not _quantizes_above(node)


def _quantizes_above(node: Node) -> bool:
    return meets(node, _is_fake_quantize, lambda node: [value.get_node() for value in node.input_values()])


def _is_fake_quantize(node: Node) -> bool:
    return node.get_type_name() == "FakeQuantize"


def _squeeze(node: Node) -> Node | None:
    """Squeeze-15, unless it may leave axes of other sizes as they are."""
    skips = node.get_attributes()["allow_axis_skip"]
    return None if skips else NodeFactory("opset1").create("Squeeze", node.input_values(), {})


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
    """Interpolate-4 takes sizes and scales, and ignores those that its mode does not name. Not over the batch: the plugin
    would fuse it with one over the space into one that it has no kernel for.
    """
    attributes = node.get_attributes()
    data, target = node.input_value(0), node.input_value(1)
    if attributes["mode"] not in ("nearest", "linear", "linear_onnx", "cubic"):
        return None
    if node.get_input_size() > 2:
        axes = node.input_value(2)
        count = axes.get_partial_shape()[0]
    else:
        count = data.get_partial_shape().rank
        axes = constant(np.arange(count.get_length()), "i64").output(0) if count.is_static else None
    if axes is None or count.is_dynamic or _resizes_batch(axes, data):
        return None
    ones = np.ones(count.get_length())
    if attributes["shape_calculation_mode"] == "sizes":
        targets = [target, constant(ones).output(0)]
    else:
        targets = [constant(ones, "i32").output(0), target]
    return NodeFactory("opset4").create("Interpolate", [data, *targets, axes], attributes)


def _resizes_batch(axes: Output, data: Output) -> bool:
    values, shape = constant_above(axes), shape_of(data)
    if values is None or shape is None or values.size == len(shape):
        return False
    return bool((values % len(shape) == 0).any())


def without_even_mask(attention: Node) -> Node | None:
    """The attention without a constant mask that adds one number to all scores, which changes none of the shares.

    MOC transformations write such a mask where they join MatMul, Softmax and MatMul, and the CPU plugin's kernel for
    attention with a cache reads it past its end. What the scale differs from ``1 / sqrt(size of a head)`` by goes into
    the query: without a mask the operation takes no scale. None where there is nothing to drop, or a size is dynamic.
    """
    if attention.get_input_size() < 4:
        return None
    query, key, value, mask = (attention.input_value(port) for port in range(4))
    shape, number = shape_of(query), mask.get_node()
    if shape is None or shape[-1] is None or precision_of(query) not in REAL or not isinstance(number, Constant):
        return None
    if precision_of(mask) not in REAL or number.data.size != 1 or not np.isfinite(values_of(number)).all():
        return None
    if attention.get_input_size() > 4:
        scale = attention.input_value(4).get_node()
        if not isinstance(scale, Constant):
            return None
        factor = np.float32(float(values_of(scale).reshape(-1)[0]) * np.sqrt(shape[-1]))
        if factor != 1:
            query = opset1.multiply(query, constant(factor, precision_of(query))).output(0)
    return opset13.scaled_dot_product_attention(query, key, value, causal=attention.get_attributes()["causal"])


def decomposed_attention(node: Node) -> Node | None:
    """``softmax(q @ (k.T * scale) + mask) @ v``, so that both MatMuls can run in low precision.

    A key that comes out of a Transpose is turned by it; any other by the MatMul, which needs no layer of its own.
    """
    query, key, value = (node.input_value(port) for port in range(3))
    shape, precision = shape_of(key), precision_of(query)
    if shape is None or precision not in REAL:
        return None
    scale = node.input_value(4) if node.get_input_size() > 4 else _scale_of_heads(query, key)
    mask = node.input_value(3) if node.get_input_size() > 3 else None
    is_known = isinstance(scale.get_node(), Constant)
    if RELEASE < (2025, 0) and not is_known:
        return None  # left to the plugin, which scales the query there
    if node.get_attributes()["causal"]:
        mask = _causal_mask(query, key, precision)
    elif mask is not None and precision_of(mask) == "boolean":
        mask = of_mask(mask, 0.0, -np.inf, precision)
    elif mask is not None and precision_of(mask) != precision:
        return None
    is_turned = key.get_node().get_type_name() == "Transpose"
    if is_turned:
        key = _last_axes_swapped(key, len(shape))
    if is_known and not _is(scale, 1.0):
        key = opset1.multiply(key, scale).output(0)
    scores = opset1.matmul(query, key, False, not is_turned)
    if not is_known:  # before the MatMul no dequantization could absorb it
        scores = opset1.multiply(scores, scale)
    if mask is not None and not _is(mask, 0.0):
        scores = opset1.add(scores, _with_leading_axes(mask, len(shape)))
    return opset1.matmul(opset8.softmax(scores, axis=-1), value, False, False)


def _scale_of_heads(query: Output, key: Output) -> Output:
    """``1 / sqrt(size of a head)``, read off the query where it is open."""
    precision = precision_of(query)
    sizes = [shape[-1] for value in (query, key) if (shape := shape_of(value)) is not None and shape[-1] is not None]
    if sizes:
        return constant(np.float32(1 / np.sqrt(sizes[0])), precision).output(0)
    size = opset1.convert(_size(query, -1), precision)
    return opset1.power(size, constant(np.float32(-0.5), precision)).output(0)


def _causal_mask(query: Output, key: Output, precision: str) -> Output:
    """Each position sees itself and those before it: [query positions, key positions], for dynamic sizes too."""
    shapes = shape_of(query), shape_of(key)
    counts = [None if shape is None else shape[-2] for shape in shapes]
    if None not in counts:
        seen = np.tri(*counts, dtype=np.float32)
        return constant(np.where(seen, np.float32(0), np.float32(-np.inf)), precision).output(0)
    rows, columns = (
        opset1.unsqueeze(_counted_to(_size(value, -2)), constant(np.array(axis), "i64"))
        for value, axis in ((query, 1), (key, 0))
    )
    return of_mask(opset1.greater(columns, rows).output(0), -np.inf, 0.0, precision)


def _size(value: Output, axis: int) -> Output:
    """A size, read off the data."""
    index = constant(np.array(axis), "i32")
    return opset8.gather(opset8.shape_of(value, "i32"), index, constant(np.array(0), "i32")).output(0)


def _counted_to(count: Output) -> Output:
    start, step = (constant(np.array(number), "i32") for number in (0, 1))
    inputs = [start.output(0), count, step.output(0)]  # opset8.range makes the first version, which a GPU does not know
    return NodeFactory("opset4").create("Range", inputs, {"output_type": "i32"}).output(0)


def _mat_mul(node: Node) -> Node | None:
    absorbed = absorbed_transposes(node)
    if absorbed is None:
        return None
    inputs, attributes = absorbed
    return opset1.matmul(*inputs, attributes["transpose_a"], attributes["transpose_b"])


def _reshape(node: Node) -> Node | None:
    """Of a stored zero point, before or after its Convert: it could not be folded while it was an input.

    Of quantized weights, unless it makes the groups of a convolution: they are stored as they are read.
    """
    source, shape = node.input_value(0).get_node(), shape_of(node.output(0))
    if shape is None or None in shape:
        return None
    if source.get_type_name() == "FakeQuantize":
        return _reshaped_weights(node, source, shape)
    convert = source if source.get_type_name() == "Convert" else None
    stored = convert.input_value(0).get_node() if convert is not None else source
    if not isinstance(stored, Constant):
        return None
    reshaped = constant(values_of(stored).reshape(shape), precision_of(stored.output(0)))
    return reshaped if convert is None else opset1.convert(reshaped, precision_of(convert.output(0)))


def _reshaped_weights(node: Node, quantize: Node, shape: tuple[int, ...]) -> Node | None:
    before = shape_of(node.input_value(0))
    in_groups = any(target.get_node().get_type_name() == "GroupConvolution" for target in consumers_of(node.output(0)))
    if before is None or None in before or in_groups or 0 in shape:
        return None
    return _moved_weights(quantize, lambda values: values.reshape(shape), lambda end: reshaped_with(end, before, shape))


def _transpose(node: Node) -> Node | None:
    """Of quantized weights: they are stored as they are read."""
    source, order = node.input_value(0).get_node(), node.input_value(1).get_node()
    if source.get_type_name() != "FakeQuantize" or not isinstance(order, Constant) or not order.data.size:
        return None
    axes = order.data.reshape(-1).tolist()

    def moved(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.reshape((1,) * (len(axes) - values.ndim) + values.shape).transpose(axes))

    return _moved_weights(source, moved, moved)


def _moved_weights(
    quantize: Node,
    move: Callable[[np.ndarray], np.ndarray],
    move_end: Callable[[np.ndarray], np.ndarray | None],
) -> Node | None:
    """The FakeQuantize of a constant after what moves its values; None where an interval cannot follow."""
    details, stored = QuantizationDetails.of(quantize), quantize.input_value(0).get_node()
    if (
        details is None
        or not isinstance(stored, Constant)
        or shape_of(stored.output(0)) != shape_of(quantize.output(0))
    ):
        return None
    ends, precision = [move_end(end) for end in details.intervals], precision_of(quantize.output(0))
    if any(end is None for end in ends):
        return None
    data = constant(move(values_of(stored)), precision)
    return opset1.fake_quantize(data, *(constant(end, precision) for end in ends), details.levels)


def _mvn(node: Node) -> Node | None:
    """``(x - mean) / sqrt(mean((x - mean)²) + eps)`` where the normalized axes are not one of the kernels' forms."""
    attributes, shape, axes = node.get_attributes(), shape_of(node.input_value(0)), node.input_value(1)
    if shape is None:
        return None
    data = node.input_value(0)
    deviation = opset1.subtract(data, opset1.reduce_mean(data, axes, True))
    if not attributes["normalize_variance"]:
        return deviation
    precision = precision_of(data)
    square = opset1.power(deviation, constant(np.float32(2), precision))
    variance = opset1.reduce_mean(square, axes, True)
    eps = constant(np.float32(attributes["eps"]), precision)
    if str(attributes["eps_mode"]).lower() == "inside_sqrt":
        root = opset1.sqrt(opset1.add(variance, eps))
    else:
        root = opset1.add(opset1.sqrt(variance), eps)
    return opset1.divide(deviation, root)


def group_normalization(node: Node) -> Node | None:
    """``mvn(x) * scale + bias`` for data of shape [N, C, ...], each of G groups of channels normalized by itself.

    The groups are at N, [N * G, C / G, ...], so that sizes of space may be open.
    """
    data, *affine = node.input_values()
    shape, attributes, precision = shape_of(data), node.get_attributes(), precision_of(data)
    if shape is None or shape[1] is None or precision not in REAL:
        return None
    groups, (_, channels, *space) = attributes["num_groups"], shape

    def with_channels(value: Output, count: int) -> Output:
        if groups == 1:
            return value
        return opset1.reshape(value, constant(np.array([-1, count, *[0] * len(space)]), "i64"), True).output(0)

    axes = constant(np.arange(1, len(shape)), "i64").output(0)
    settings = {"normalize_variance": True, "eps": attributes["epsilon"], "eps_mode": "inside_sqrt"}
    parts = with_channels(data, channels // groups)
    normalized = with_channels(NodeFactory("opset6").create("MVN", [parts, axes], settings).output(0), channels)
    size = [channels, *[1] * len(space)]

    def by_channel(value: Output) -> Output:
        """Constants at once: rules of the lowering look for them, and nothing folds a Reshape there any more."""
        if (values := constant_above(value)) is not None:
            return constant(values.reshape(size), precision).output(0)
        return opset1.reshape(value, constant(np.array(size), "i64"), False).output(0)

    scale, bias = map(by_channel, affine)
    return opset1.add(opset1.multiply(normalized, scale), bias)


def _with_leading_axes(mask: Output, rank: int) -> Output:
    """The mask before its leading axes of size 1 were dropped: a plugin then joins the Add with what makes the mask."""
    node = mask.get_node()
    source = node.input_value(0) if node.get_type_name() in ("Reshape", "Squeeze") else mask
    shapes = shape_of(source), shape_of(mask)
    if None in shapes or len(shapes[0]) > rank:
        return mask
    dropped = len(shapes[0]) - len(shapes[1])
    if node.get_type_name() == "Squeeze":  # of open sizes, too
        axes = constant_above(node.input_value(1)) if node.get_input_size() > 1 else None
        is_leading = axes is not None and set(axes.reshape(-1) % len(shapes[0])) == set(range(dropped))
    else:
        is_leading = None not in shapes[0] and shapes[0] == (*[1] * dropped, *shapes[1])
    return source if is_leading else mask


def _last_axes_swapped(value: Output, rank: int) -> Output:
    """An existing Transpose absorbs the swap."""
    order = [*range(rank - 2), rank - 1, rank - 2]
    node = value.get_node()
    if node.get_type_name() == "Transpose" and isinstance(node.input_value(1).get_node(), Constant):
        inner = node.input_value(1).get_node().data
        value, order = node.input_value(0), [int(inner[axis]) for axis in order]
    return opset1.transpose(value, constant(np.array(order), "i32")).output(0)


def _is(value: Output, number: float) -> bool:
    node = value.get_node()
    return isinstance(node, Constant) and node.data.size == 1 and float(node.data.reshape(-1)[0]) == number


def _one_direction_each(node: Node) -> Node | None:
    """A bidirectional sequence as a forward and a reverse one."""
    if node.get_attributes()["direction"] != "bidirectional":
        return None

    def halves(value: Output, axis: int) -> list[Output]:
        return opset1.split(value, constant(np.array(axis), "i64"), 2).outputs()

    first, *others = in_both_directions(node, halves)
    for port, joined in enumerate(others, 1):
        replace_output(node.output(port), joined.output(0))
    return first


def _convert_like(node: Node) -> Node | None:
    """To the type itself, which does nothing where all floats have become f32. A LayerNormalization of an ONNX file in
    f16 ends in one, and what reads it would not see that its data is quantized.
    """
    wanted = node.input_value(1).get_element_type()
    return None if wanted.is_dynamic() else opset1.convert(node.input_value(0), wanted)


_DECOMPOSED = {
    "ConvertLike": _convert_like,
    "Einsum": decomposed_einsum,
    "GRUCell": decomposed_gru_cell,
    "GroupNormalization": group_normalization,
    "RNNCell": decomposed_rnn_cell,
}
_CONVERSIONS = {
    ("MaxPool", "opset8"): _max_pool,
    ("MaxPool", "opset14"): _max_pool,
    ("AvgPool", "opset14"): _avg_pool,
    ("Interpolate", "opset11"): _interpolate,
    ("MVN", "opset6"): _mvn,
    ("LSTMSequence", "opset5"): _one_direction_each,
    ("GRUSequence", "opset5"): _one_direction_each,
    ("Reshape", "opset1"): _reshape,
    ("Squeeze", "opset15"): _squeeze,
    ("Transpose", "opset1"): _transpose,
    ("MatMul", "opset1"): _mat_mul,
    ("ScaledDotProductAttention", "opset13"): decomposed_attention,
}
_CONVERTED = frozenset(kind for kind, _ in _CONVERSIONS)
