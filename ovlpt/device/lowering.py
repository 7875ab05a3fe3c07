"""From the pass's own result to a form that a plugin executes in int8 with its own LPT off.

A plugin runs its common optimizations before it would run LPT, and they do not expect type-relaxed operations. These
are the rules, all found by running:

1. A constant Multiply behind a relaxed Convolution, GroupConvolution or MatMul would be fused into the integer weights
   and throw; an Add behind it would be fused into the FakeQuantize and keep the layer from its bias. Both patterns ask
   for a Constant: the constants stand behind a Convert from f64 that constant folding is told to leave, and that the
   plugin's change of f64 to f32 removes, after the fusions. The plugin then has the same scales, biases and
   post-operations as with its own LPT. Adds in front of the Multiply move behind it: (x + b) * s = x * s + b * s.
   The mark is no part of an IR. Where the model may be saved (``serializable``), on other devices, and where no such
   Multiply follows, a Clamp over the whole float range stands behind the layer instead: it costs a post-operation.
2. A relaxed Subtract of an integer or f16 tensor and an f32 constant throws; it gets a Convert. Only there: a Convert before
   every zero point or residual Add loses the int8 fusion.
3. Two equal zero-point Subtracts on one tensor are merged, and the plugin then drops the zero point of the second
   convolution: wrong numbers, no error. Siblings get input type lists of different lengths, which keeps them apart.
4. A Transpose of the last two axes before a MatMul would be fused into a MatMul that is not relaxed; the relaxed one
   takes it into its flags first.
5. A relaxed MVN that is no kernel of its own is decomposed in the integer type of its data; it gets a Convert.
6. A Relu before a relaxed FakeQuantize over [0, …] would be fused into one that is not relaxed and reports floats:
   wrong numbers, no error. It does nothing there and is passed by.
7. Behind a MatMul of rank 4 a per-channel scale no longer fuses; the layer and the elementwise chain behind it run at
   rank 3 between two Reshapes, which cost nothing.
8. A relaxed Multiply of integers before a layer that stays in float would be fused into the layer's weights, and the
   layer read integers: MultiplyConvolutionFusion throws. Before an Add of a constant, the plugin's own LPT would
   subtract in the integer type: wrong numbers, no error. The Multiply gets a Convert.
9. A Multiply that alone reads a relaxed FakeQuantize would be fused into its output interval, and real values then
   stored as integers (FakeQuantizeMulFusion): wrong numbers, no error. Where only a dequantization reads the integers,
   both are one FakeQuantize of floats.
10. A negative scale behind a Relu or PRelu would be moved in front of it, into the layer's scale: wrong numbers, no
    error, with the plugin's own LPT too. The Clamp of rule 1 between the two keeps them apart.
11. A relaxed Clamp of integers that a FakeQuantize behind it makes needless would be left out, and the FakeQuantize then
    report its new input's type. The Clamp gets a Convert.
12. A relaxed operation that reports f16 goes on to report it where the plugin turns f16 into f32. It reports f32, and a
    Convert follows.
13. The stride of a 1×1 Convolution would be moved up through the Subtract of its zero point to a Split, whose outputs
    that pass (UnsupportedNodesStridesPropagation) cannot tell apart: it throws. The stride is taken by a MaxPool of
    single elements in front of the Subtract.
14. Behind a MatMul with open sizes, or of two tensors, the plugin takes a constant by rows or heads for one by columns, and
    throws or computes wrong numbers. The Floor of rule 17 stands in front.
15. A scale and a shift between the Clamp of rule 1 and a FakeQuantize would be fused into its input interval whenever
    a saved model is compiled, which takes the plugin longer than its own LPT does. They are in the interval already.
16. Compiled with the plugin's own LPT on, a model would be transformed a second time, which loses zero points and changes
    numbers. The plugin turns its LPT on where a FakeQuantize has four Constants; here one of them is a Reshape.
17. Behind the Clamp of rule 1 the scale is a post-operation, which the kernel for groups of odd sizes (gemm) takes from
    the first eight outputs of a group for all the others: wrong numbers, no error. There a Floor stands in place of the
    Clamp: it changes no integer, and no post-operation passes it.
18. A relaxed NormalizeL2 of rank 5 is no kernel and decomposed in the integer type of its data; it gets a Convert.
19. A relaxed ReduceMean or ReduceSum before another of its kind would be merged with it into one that is not relaxed
    and throw; it gets a Convert.
20. A zero point of i8 data is subtracted in i8, which saturates: wrong numbers, no error. No kernel takes one, only those
    of u8 data; it is subtracted in f32.
21. A relaxed Add of a constant to f16 or integers, before another Add, would be merged with it into one that is not
    relaxed and throw; it gets a Convert.
22. With open sizes, scales and shifts by channel that the plugin takes into the interval of a FakeQuantize without such are
    those of the first channel for all the others: wrong numbers, no error, with the plugin's own LPT too. The interval
    differs by channel from the start, by one step of f32.
23. A Transpose before a FakeQuantize by channel and a reduction would be moved behind them, and the channels to another
    axis, which with open sizes throws. An Add keeps them apart until that is over, and then goes into the interval.
24. A grouped convolution over three axes of space pads wrongly what has a zero point: wrong numbers, no error, with the
    plugin's own LPT too. A Pad in front puts the zero point there. A depthwise convolution is right.
25. A reduction of the last axis alone, and one that drops axis 1, takes constants by channel, and a FakeQuantize to integers,
    wrongly as post-operations: wrong numbers, no error, in float too. Before these, with scalars and functions between,
    it stands between two Reshapes, and takes none.
26. Behind a MatMul whose result is quantized by rows the constants that rule 1 hides would be taken for constants of
    rows: wrong numbers, no error. The Clamp of rule 1 stands there.

On a GPU (tried on virtual ones) rules 3, 4, 6 and 9 hold as they are; of 1 and 10 the Clamp; 7 is not needed. And:

2.  A Convert would become a layer of its own. Instead of ``x - z`` there is a relaxed ``x + (-z)``, which nothing matches.
5.  The kernels of MVN are others (`ovlpt.plugin_config.gpu.KERNELS`).
8.  Only where a constant Multiply stands directly before a layer with weights; elsewhere the Convert is a layer.
11. Only where the FakeQuantize cuts off as much as the Clamp; elsewhere the Convert is a layer.
27. The plugin changes f32 to f16 before everything else, which a relaxed operation does not follow. For f16 each of them
    reports f16, and a Convert to f32 behind it goes with that change.
28. A mean of integers gives f32 there, and so a float layer behind it would run in f32: its scale stays behind it.
29. Weights of a MatMul lie in rows, else a Transpose of them is made, and with it a MatMul that is not relaxed.
30. In f16 a Convert stands behind each input, which only the plugin's own LPT fuses into a FakeQuantize. One that reads
    an input is marked to stay in f32, and no Convert is put there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np

from ovlpt import plugin_config
from ovlpt.device.hazards import WEIGHTED, is_int8_layer, negative_scale_after_relu
from ovlpt.device.release import check_release
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import constant, constant_above, is_scalar_like, precision_of, values_of
from ovlpt.graph.consumers import is_output
from ovlpt.graph.dequantization import dequantization_below
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.graph.mat_mul import absorbed_transposes
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.graph.relaxed import is_relaxed, relaxed, relaxed_like
from ovlpt.graph.weights import folded_constant, varies_along
from ovlpt.layer_transformation import move_tensor_names, replace_output, shape_of
from ovlpt.low_precision import MARKER
from ovlpt.openvino_api import Constant, Model, ModelPass, Node, NodeFactory, Output, opset1
from ovlpt.precisions import REAL
from ovlpt.trace import InputError

RECURRENT_WEIGHTS = {"LSTMSequence": (4, 5), "GRUSequence": (3, 4)}  # input, and recurrent
# The plugin's mark of a node that is not to be folded: of 2025 and later, and of 2024.6.
_NO_FOLDING = ("DisableConstantFolding_0", "DisableConstantFolding_util")
# Rewritten by the plugin in the integer type of their data
_TAKES_ITS_TYPE = frozenset(("Clamp", "MVN", "NormalizeL2", "ReduceMean", "ReduceSum"))
# Of integers these give f32 on a GPU whatever they report, until the scale behind them is part of the layer.
_REDUCTIONS = frozenset(("AvgPool", "ReduceMean", "ReduceSum"))
# What the plugin takes into the interval of a FakeQuantize, or leaves out before one
_BEFORE_INTERVAL = frozenset(("Add", "Clamp", "Convert", "Divide", "Floor", "Multiply", "Relu", "Subtract"))
# Post-operations of a reduction, beside FakeQuantize
_AFTER_REDUCTION = frozenset(
    (
        *("Abs", "Add", "Clamp", "Convert", "Divide", "Elu", "Exp", "Floor", "Gelu", "HSigmoid", "HSwish", "Mish"),
        *("Multiply", "Negative", "PRelu", "Power", "Relu", "Sigmoid", "SoftPlus", "Sqrt", "Subtract", "Swish", "Tanh"),
    )
)
# Reductions, before which a Transpose moves through a FakeQuantize
_MOVES_TRANSPOSE = frozenset(
    f"Reduce{name}" for name in ("L1", "L2", "LogicalAnd", "LogicalOr", "Max", "Mean", "Min", "Prod", "Sum")
) | {"Squeeze"}
_FLOAT_MAX = float(np.finfo(np.float32).max)


class PluginLowering(ModelPass):
    """Prepares the result of `LowPrecision` for ``core.compile_model`` on ``device``.

    The numbers stay the same. Raises `InputError` for a device without lowering rules.

    ``lpt_on``: the model will be compiled with the plugin's own LPT on. Only then does the plugin form quantized
    recurrent layers; without it their weights are folded, and they run in float.
    ``serializable``: the result may be saved and compiled from the file, at the cost of a post-operation a layer;
    False is
    for a model that is compiled as it stands.
    """

    def __init__(self, device: str = "CPU", lpt_on: bool = False, serializable: bool = True, precision: str = "f32"):
        super().__init__()
        self.device = plugin_config.kind(device)
        if self.device not in ("CPU", "GPU"):
            raise InputError(f'no lowering for device "{device}"; there is one for "CPU" and "GPU"')
        self.lpt_on, self.precision = lpt_on, precision
        self.serializable = serializable or self.device != "CPU"

    def run_on_model(self, model: Model) -> bool:
        if model.has_rt_info([MARKER, "lowered"]):
            return False
        guard = _guard_output if self.device != "CPU" else _guard_layer if self.serializable else _guard_constants
        kernels = plugin_config.kernels(self.device)
        check_release(guard)
        for node in list(all_nodes(model)):
            if node.get_output_size() == 1 and precision_of(node.output(0)) == "f16" and is_relaxed(node):
                _report_f32(node)
        nodes = list(all_nodes(model))
        kinds = WEIGHTED | _TAKES_ITS_TYPE | {"Add", "FakeQuantize", "Multiply", "Subtract"}
        relaxed_nodes = [node for node in nodes if node.get_type_name() in kinds and is_relaxed(node)]
        if not self.lpt_on:
            for node in nodes:
                _fold_recurrent_weights(node)
        subtracts = []
        for node in relaxed_nodes:
            kind = node.get_type_name()
            if kind == "FakeQuantize":
                _pass_relu_by(node)
                _join_dequantization(node)
            elif kind in WEIGHTED:
                if kind == "MatMul":
                    node = _absorb_transposes(node)
                    node = _run_at_rank_3(node) if self.device == "CPU" else _with_rows_of_weights(node)
                elif kind == "Convolution" and self.device == "CPU":
                    node = _stride_before_zero_point(node)
                elif kind == "GroupConvolution" and self.device == "CPU":
                    node = _pad_before_zero_point(node)
                if (relu := negative_scale_after_relu(node)) is not None:
                    _guard_output(relu)
                guard(node)
            elif kind in _TAKES_ITS_TYPE:
                if precision_of(node.input_value(0)) not in REAL and _loses_its_type(node, self.device, kernels):
                    node.input(0).replace_source_output(opset1.convert(node.input_value(0), "f32").output(0))
            elif kind == "Multiply":
                if precision_of(node.input_value(0)) in REAL:
                    needs_convert = _is_widened(node)
                else:
                    needs_convert = self.device == "CPU" or _meets_weights(node)
                if needs_convert:
                    _convert_input(node, opset1.multiply)
            elif kind == "Add":
                if self.device == "CPU" and _is_widened(node) and _meets_add(node):
                    _convert_input(node, opset1.add)
            elif self.device == "CPU" and _is_signed_zero_point(node):
                _subtract_in_f32(node)
            elif not _is_widened(node):
                subtracts.append(node)
            elif self.device == "CPU":
                _convert_input(node, opset1.subtract)
            else:
                _add_negative(node)
        numbers = _sibling_numbers(subtracts)
        if guard is _guard_layer:
            for node in list(all_nodes(model)):
                if node.get_type_name() == "FakeQuantize":
                    _take_affine_in(node)
        if self.device == "CPU":
            for node in list(all_nodes(model)):
                if node.get_type_name() in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"):
                    _reduce_alone(node)
                if node.get_type_name() == "FakeQuantize" and None in (shape_of(node.output(0)) or (None,)):
                    _keep_transpose(node)
                    _differ_by_channel(node)
        if self.precision != "f32":
            for node in model.get_ops():
                if _quantizes_input(node):
                    _read_in_f32(node, self.precision)
                elif is_relaxed(node) and precision_of(node.output(0)) == "f32":
                    _report(node, self.precision, numbers.get(node.get_instance_id(), 0))
        else:
            for node in subtracts:
                if number := numbers[node.get_instance_id()]:
                    _keep_apart(node, number)
        if self.serializable and not self.lpt_on:
            for node in list(all_nodes(model)):
                if node.get_type_name() == "FakeQuantize":
                    _hide_from_lpt(node)
        model.validate_nodes_and_infer_types()
        if self.serializable:
            model.set_rt_info(self.device, [MARKER, "lowered"])
        return True


def _report_f32(node: Node) -> None:
    wide = relaxed_like(node, node.input_values(), "f32")
    narrow = opset1.convert(wide.output(0), "f16")
    narrow.set_friendly_name(node.get_friendly_name())
    wide.set_friendly_name(f"{node.get_friendly_name()}/F32")
    replace_output(node.output(0), narrow.output(0))


def _loses_its_type(node: Node, device: str, kernels: Mapping[str, Callable[[Node], bool]]) -> bool:
    """Whether the plugin replaces a relaxed operation by one that is not."""
    match kind := node.get_type_name():
        case "Clamp":
            return device == "CPU" or _is_needless(node)
        case "MVN":
            return node.get_type_info().version_id == "opset6" and not kernels["MVN"](node)
        case "NormalizeL2":
            return device == "CPU" and len(shape_of(node.output(0)) or ()) not in (2, 3, 4)
        case "ReduceMean" | "ReduceSum":
            return any(target.get_node().get_type_name() == kind for target in node.output(0).get_target_inputs())
    return True


def _is_needless(clamp: Node) -> bool:
    """Whether a FakeQuantize behind the Clamp cuts off as much."""
    low, high = (clamp.get_attributes()[end] for end in ("min", "max"))
    readers = [target.get_node() for target in clamp.output(0).get_target_inputs()]
    found = [QuantizationDetails.of(reader) for reader in readers if reader.get_type_name() == "FakeQuantize"]
    return any(each is None or ((each.input_low >= low).all() and (each.input_high <= high).all()) for each in found)


def _report(node: Node, precision: str, siblings: int) -> None:
    """Let a node report ``precision``, and a Convert behind it give what it gave."""
    operation, opset = node.get_type_name(), node.get_type_info().version_id
    new = relaxed(operation, node.input_values(), precision, node.get_attributes(), opset, siblings=siblings)
    convert = opset1.convert(new, precision_of(node.output(0)))
    names = node.get_friendly_name(), f"{node.get_friendly_name()}/Real"
    if is_output(node.output(0)):
        names = f"{node.get_friendly_name()}_original", node.get_friendly_name()
    new.set_friendly_name(names[0])
    convert.set_friendly_name(names[1])
    replace_output(node.output(0), convert.output(0))
    if operation in _REDUCTIONS:
        for target in convert.output(0).get_target_inputs():
            if target.get_node().get_type_name() == "Multiply" and _meets_weights(target.get_node()):
                _guard_output(target.get_node())


def _quantizes_input(node: Node) -> bool:
    if node.get_type_name() != "FakeQuantize":
        return False
    source = node.input_value(0)
    return source.get_node().get_type_name() == "Parameter" and precision_of(source) == "f32"


def _read_in_f32(node: Node, precision: str) -> None:
    """Let a FakeQuantize read f32, and report ``precision`` where it reports f32."""
    stored = precision_of(node.output(0))
    reported = precision if stored == "f32" else stored
    new = relaxed("FakeQuantize", node.input_values(), reported, node.get_attributes(), in_f32=True)
    new.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), new.output(0) if reported == stored else opset1.convert(new, stored).output(0))


def _hide_from_lpt(node: Node) -> None:
    """Put the highest output value behind a Reshape, which the plugin folds after it has looked for quantization."""
    value = node.input_value(4)
    if isinstance(value.get_node(), Constant):
        shape = np.array(shape_of(value), np.int64)
        hidden = opset1.reshape(value, constant(shape, "i64"), False)
        node.input(4).replace_source_output(hidden.output(0))


def _fold_recurrent_weights(node: Node) -> None:
    for port in RECURRENT_WEIGHTS.get(node.get_type_name(), ()):
        value = node.input_value(port)
        folded = None if isinstance(value.get_node(), Constant) else folded_constant(value)
        if folded is not None:
            node.input(port).replace_source_output(constant(folded, precision_of(value)).output(0))


def has_quantized_recurrence(model: Model) -> bool:
    """Whether a recurrent layer reads dequantized integer weights."""
    return any(
        not isinstance(node.input_value(port).get_node(), Constant)
        for node in all_nodes(model)
        for port in RECURRENT_WEIGHTS.get(node.get_type_name(), ())
    )


def _absorb_transposes(node: Node) -> Node:
    absorbed = absorbed_transposes(node)
    if absorbed is None:
        return node
    inputs, attributes = absorbed
    new = relaxed("MatMul", inputs, precision_of(node.output(0)), attributes)
    new.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), new.output(0))
    return new


def _stride_before_zero_point(node: Node) -> Node:
    subtract, attributes = node.input_value(0).get_node(), node.get_attributes()
    strides, kernel = attributes["strides"], list(node.get_input_shape(1))[2:]
    pads = (*attributes["pads_begin"], *attributes["pads_end"])
    if subtract.get_type_name() != "Subtract" or subtract.input_value(0).get_node().get_output_size() == 1:
        return node
    if set(kernel) != {1} or set(strides) == {1} or any(pads) or attributes["auto_pad"].startswith("same"):
        return node
    nothing = [0] * len(kernel)
    kept = opset1.max_pool(subtract.input_value(0), strides, nothing, nothing, kernel)
    subtract = relaxed_like(subtract, [kept.output(0), subtract.input_value(1)], precision_of(subtract.output(0)))
    inputs = [subtract.output(0), node.input_value(1)]
    dense = relaxed("Convolution", inputs, precision_of(node.output(0)), attributes | {"strides": [1] * len(strides)})
    dense.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), dense.output(0))
    return dense


def _pad_before_zero_point(node: Node) -> Node:
    subtract, attributes = node.input_value(0).get_node(), node.get_attributes()
    begin, end = attributes["pads_begin"], attributes["pads_end"]
    if subtract.get_type_name() != "Subtract" or len(begin) != 3 or attributes["auto_pad"].startswith("same"):
        return node
    zero_point, depthwise = constant_above(subtract.input_value(1)), list(node.get_input_shape(1)[1:3]) == [1, 1]
    if depthwise or not any((*begin, *end)) or zero_point is None or not is_scalar_like(zero_point):
        return node
    data, pads = subtract.input_value(0), (constant(np.array([0, 0, *pad]), "i64") for pad in (begin, end))
    padded = opset1.pad(data, *pads, "constant", constant(zero_point.flat[0], precision_of(data)))
    subtract = relaxed_like(subtract, [padded.output(0), subtract.input_value(1)], precision_of(subtract.output(0)))
    attributes = {**attributes, "pads_begin": [0] * 3, "pads_end": [0] * 3, "auto_pad": "explicit"}
    inputs = [subtract.output(0), node.input_value(1)]
    dense = relaxed("GroupConvolution", inputs, precision_of(node.output(0)), attributes)
    dense.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), dense.output(0))
    return dense


def _meets_weights(multiply: Node) -> bool:
    """Whether a scale by a constant stands before a layer with weights."""
    readers = (target.get_node().get_type_name() for target in multiply.output(0).get_target_inputs())
    return constant_above(multiply.input_value(1)) is not None and any(reader in WEIGHTED for reader in readers)


def _with_rows_of_weights(node: Node) -> Node:
    """``MatMul(x, W)`` as ``MatMul(x, W.T, transpose_b)``: else a plain one with a Transpose would be made of it."""
    weights, attributes = node.input_value(1), node.get_attributes()
    if not isinstance(weights.get_node(), Constant) or len(weights.get_shape()) != 2 or attributes["transpose_b"]:
        return node
    rows = constant(values_of(weights.get_node()).T, precision_of(weights))
    inputs, attributes = [node.input_value(0), rows.output(0)], {**attributes, "transpose_b": True}
    new = relaxed("MatMul", inputs, precision_of(node.output(0)), attributes)
    new.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), new.output(0))
    return new


def _pass_relu_by(node: Node) -> None:
    details = QuantizationDetails.of(node)
    if details is None or (details.input_low < 0).any():
        return
    while (relu := node.input_value(0).get_node()).get_type_name() == "Relu":
        node.input(0).replace_source_output(relu.input_value(0))


def _take_affine_in(node: Node) -> None:
    """``FQ(clamp(x) * s + b; il, ih) == FQ(clamp(x); (il - b) / s, (ih - b) / s)``"""
    details, data = QuantizationDetails.of(node), node.input_value(0)
    if details is None:
        return
    low, high = details.input_low, details.input_high
    while (link := data.get_node()).get_type_name() in ("Multiply", "Add"):
        values = constant_above(link.input_value(1))
        shapes = {shape_of(value) for value in (link.input_value(0), link.output(0))}
        if values is None or len(shapes) > 1 or is_relaxed(link) or len(data.get_target_inputs()) > 1:
            return
        scales = link.get_type_name() == "Multiply"
        if scales and not (values > 0).all():
            return
        with np.errstate(over="ignore"):
            low, high = (end / values if scales else end - values for end in (low, high))
        data = link.input_value(0)
    is_moved = data != node.input_value(0)
    if not is_moved or link.get_type_name() != "Clamp" or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return
    ends = [constant(low).output(0), constant(high).output(0), *node.input_values()[3:]]
    quantize = fake_quantize_node(data, ends, details.levels, precision_of(node.output(0)))
    quantize.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), quantize.output(0))


def _join_dequantization(node: Node) -> None:
    """``(FQ(x) - z) * s`` is a FakeQuantize with the output interval ``(low - z) * s``."""
    found, details = dequantization_below(node), QuantizationDetails.of(node)
    if found.multiply is None or details is None:
        return
    shape = shape_of(node.output(0)) or (None,)
    constants = [values for values in (found.scale, found.zero_point) if values is not None]
    if None in shape and not all(varies_along(values, len(shape), (1,)) for values in constants):
        return  # the plugin has no such FakeQuantize for open sizes
    if found.multiply.get_output_partial_shape(0) != node.get_output_partial_shape(0):
        return  # the constants settle a size that is open in the data
    zero_point = found.zero_point if found.zero_point is not None else np.float32(0)
    low, high = ((end - zero_point) * found.scale for end in (details.output_low, details.output_high))
    ends = [*node.input_values()[1:3], constant(low).output(0), constant(high).output(0)]
    if len({precision_of(value) for value in (node.input_value(0), *ends, found.multiply.output(0))}) > 1:
        return
    joined = opset1.fake_quantize(node.input_value(0), *ends, details.levels)
    joined.set_friendly_name(found.multiply.get_friendly_name())
    replace_output(found.multiply.output(0), joined.output(0))


def _differ_by_channel(node: Node) -> None:
    """Let both interval ends of open sizes differ by channel where scales or shifts by channel will be taken in."""
    details, rank = QuantizationDetails.of(node), node.get_output_partial_shape(0).rank
    if details is None or rank.is_dynamic:
        return
    low, high = details.input_low, details.input_high
    constants, data = [low, high], node.input_value(0)
    while (link := data.get_node()).get_type_name() in _BEFORE_INTERVAL:
        values = constant_above(link.input_value(1)) if link.get_input_size() > 1 else None
        constants += [values] if values is not None else []
        data = link.input_value(0)
    channels = max(values.size for values in constants)
    by_channel = all(values.size == 1 or varies_along(values, rank.get_length(), (1,)) for values in constants)
    if channels == 1 or not by_channel or not (is_scalar_like(low) or is_scalar_like(high)):
        return
    if precision_of(node.input_value(1)) == "f16":
        node = _in_f32(node)
    step = np.spacing(np.maximum(np.abs(low), np.abs(high)).max())
    for port, end, inwards in ((1, low, step), (2, high, -step)):
        if is_scalar_like(end):
            end = np.full((1, channels, *[1] * (rank.get_length() - 2)), end.flat[0], np.float32)
            end[0, 0] += inwards
            node.input(port).replace_source_output(constant(end).output(0))


def _reduce_alone(node: Node) -> None:
    """Between two Reshapes: the last axis as rows of a matrix, axis 1 with an axis more."""
    shape, output_shape = shape_of(node.input_value(0)), shape_of(node.output(0))
    axes = node.input_value(1).get_node()
    if not isinstance(axes, Constant) or shape is None or len(shape) < 3 or not _takes_channels(node):
        return
    reduced_axes = [int(axis) % len(shape) for axis in axes.data.reshape(-1)]
    if reduced_axes == [len(shape) - 1]:
        between = (None, shape[-1])
    elif reduced_axes == [1] and not node.get_attributes()["keep_dims"]:
        between = (*shape, 1)
    else:
        return
    is_open = any(sizes.count(None) > 1 for sizes in (between, output_shape))
    if is_open and len(between) == 2:
        return
    added = constant(np.array([len(shape)]), "i64")
    data = (
        opset1.unsqueeze(node.input_value(0), added)
        if is_open
        else opset1.reshape(node.input_value(0), _target(*between), False)
    )
    inputs = [data.output(0), constant(np.array([1]), "i64").output(0)]
    attributes = {**node.get_attributes(), "keep_dims": len(between) > 2}
    kind, precision = node.get_type_name(), precision_of(node.output(0))
    if is_relaxed(node):
        reduced = relaxed(kind, inputs, precision, attributes)
    else:
        reduced = NodeFactory("opset1").create(kind, inputs, attributes)
    if is_open:
        shaped = opset1.squeeze(reduced, constant(np.array([1, len(shape)]), "i64"))
    else:
        shaped = opset1.reshape(reduced, _target(*output_shape), False)
    reduced.set_friendly_name(f"{node.get_friendly_name()}/Alone")
    shaped.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), shaped.output(0))


def _takes_channels(node: Node) -> bool:
    """Whether a FakeQuantize, or a constant that is not the same for all channels, would be a post-operation."""
    while len(targets := node.output(0).get_target_inputs()) == 1:
        (target,) = targets
        node = target.get_node()
        if node.get_type_name() == "FakeQuantize":
            return True
        others = [value for port, value in enumerate(node.input_values()) if port != target.get_index()]
        constants = [constant_above(value) for value in others]
        if node.get_type_name() not in _AFTER_REDUCTION or any(values is None for values in constants):
            return False
        if not all(map(is_scalar_like, constants)):
            return True
    return False


def _in_f32(node: Node) -> Node:
    """A FakeQuantize of f16 between two Converts."""
    wide = opset1.fake_quantize(
        *(
            opset1.convert(node.input_value(0), "f32"),
            *(constant(constant_above(end)) for end in node.input_values()[1:]),
        ),
        node.get_attributes()["levels"],
    )
    narrow = opset1.convert(wide, "f16")
    narrow.set_friendly_name(node.get_friendly_name())
    wide.set_friendly_name(f"{node.get_friendly_name()}/F32")
    replace_output(node.output(0), narrow.output(0))
    return wide


def _keep_transpose(node: Node) -> None:
    """``FQ(x; low, high) == FQ(x - low; 0, high - low)``"""
    details, data = QuantizationDetails.of(node), node.input_value(0)
    if details is None or precision_of(data) != "f32" or max(end.size for end in details.intervals) == 1:
        return
    readers = {target.get_node().get_type_name() for target in node.output(0).get_target_inputs()}
    if data.get_node().get_type_name() == "Transpose" and readers & _MOVES_TRANSPOSE:
        low, high = details.input_low, details.input_high
        shifted = opset1.add(data, constant(-low))
        for port, value in enumerate((shifted, constant(np.zeros_like(low)), constant(high - low))):
            node.input(port).replace_source_output(value.output(0))


def _guard_constants(node: Node) -> None:
    """Hide the scale, and the bias behind it, from fusions; a Clamp where no scale follows."""
    if _varies_by_rows(node):
        return _guard_layer(node)
    links = _affine_links(node)
    if _is_quantized_by_rows(node, links):
        return _guard_layer(node)
    at = next((at for at, link in enumerate(links) if link.get_type_name() == "Multiply"), None)
    targets = list(node.output(0).get_target_inputs())
    if len(targets) == 1 and targets[0].get_node().get_type_name() in ("Relu", "PRelu"):
        return None  # no fusion reaches through
    if at is None:
        return _guard_layer(node)
    if at and not _is_hidden(links[at]):
        links = [*_shift_behind_scale(node, links[:at], links[at]), *links[at + 1 :]]
    _hide_constant(links[0])
    if links[1:] and links[1].get_type_name() == "Add":
        _hide_constant(links[1])


def _is_quantized_by_rows(node: Node, links: list[Node]) -> bool:
    """Whether intervals that differ between rows follow a product and its scale: the plugin takes a shift for theirs."""
    readers = [target.get_node() for target in (links or [node])[-1].output(0).get_target_inputs()]
    found = [QuantizationDetails.of(reader) for reader in readers if reader.get_type_name() == "FakeQuantize"]
    ends = [end for details in found if details is not None for end in details.intervals]
    return node.get_type_name() == "MatMul" and any(max(end.shape[:-1], default=1) > 1 for end in ends)


def _affine_links(node: Node) -> list[Node]:
    """The Multiply, Add and Subtract operations with float constants that follow, each the only consumer."""
    links: list[Node] = []
    while True:
        targets = list(node.output(0).get_target_inputs())
        node = targets[0].get_node() if len(targets) == 1 else None
        if node is None or node.get_type_name() not in ("Multiply", "Add", "Subtract") or targets[0].get_index():
            return links
        if precision_of(node.input_value(1)) != "f32" or constant_above(node.input_value(1)) is None:
            return links
        links.append(node)


def _shift_behind_scale(node: Node, shifts: list[Node], multiply: Node) -> list[Node]:
    """``(x + b) * s`` as ``x * s + b * s``: the new Multiply and the new Add."""
    shift = sum(constant_above(link.input_value(1)) * (1 if link.get_type_name() == "Add" else -1) for link in shifts)
    scale = constant_above(multiply.input_value(1))
    scaled = opset1.multiply(node.output(0), constant(scale))
    shifted = opset1.add(scaled, constant(shift * scale))
    scaled.set_friendly_name(f"{multiply.get_friendly_name()}/Scale")
    shifted.set_friendly_name(multiply.get_friendly_name())
    replace_output(multiply.output(0), shifted.output(0))
    return [scaled, shifted]


def _is_hidden(link: Node) -> bool:
    source = link.input_value(1).get_node()
    return source.get_type_name() == "Convert" and precision_of(source.input_value(0)) == "f64"


def _hide_constant(link: Node) -> None:
    """Anew where it was done before the model was saved, and the marks were lost."""
    if not _is_hidden(link):
        hidden = opset1.convert(constant(constant_above(link.input_value(1)), "f64"), "f32")
        link.input(1).replace_source_output(hidden.output(0))
    hidden = link.input_value(1).get_node()
    for mark in _NO_FOLDING:
        hidden.get_rt_info()[mark] = ""


def _guard_layer(node: Node) -> None:
    """With a Floor where a post-operation behind the layer goes wrong, with a Clamp elsewhere."""
    _guard_output(node, is_int8_layer(node) and (_has_odd_groups(node) or _varies_by_rows(node)))


def _guard_output(node: Node, floor: bool = False) -> None:
    targets = node.output(0).get_target_inputs()
    if any(target.get_node().get_friendly_name() == f"{node.get_friendly_name()}/Guard" for target in targets):
        return
    guard = opset1.floor(node.output(0)) if floor else opset1.clamp(node.output(0), -_FLOAT_MAX, _FLOAT_MAX)
    guard.set_friendly_name(f"{node.get_friendly_name()}/Guard")
    for target in targets:
        target.replace_source_output(guard.output(0))
    move_tensor_names(node.output(0), guard.output(0))


def _has_odd_groups(node: Node) -> bool:
    """Whether groups have more outputs than a vector of 256 bits, and inputs or outputs that do not fill such vectors."""
    if node.get_type_name() != "GroupConvolution" or node.get_input_partial_shape(1).is_dynamic:
        return False
    groups, outputs, inputs = node.get_input_shape(1)[:3]
    return groups > 1 and outputs > 8 and bool(outputs % 8 or inputs % 8)


def _is_widened(node: Node) -> bool:
    """Whether input 1 is real, and input 0 of another type."""
    data, other = (precision_of(value) for value in node.input_values())
    return other in REAL and data != other


def _is_signed_zero_point(node: Node) -> bool:
    """Whether the zero point is that of i8 data; weights are folded."""
    data, zero_point = node.input_values()
    return precision_of(data) == precision_of(zero_point) == "i8" and constant_above(data) is None


def _meets_add(node: Node) -> bool:
    readers = (target.get_node().get_type_name() for target in node.output(0).get_target_inputs())
    return constant_above(node.input_value(1)) is not None and "Add" in readers


def _subtract_in_f32(node: Node) -> None:
    data, zero_point = (opset1.convert(value, "f32") for value in node.input_values())
    plain = opset1.subtract(data, zero_point)
    plain.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), plain.output(0))


def _varies_by_rows(node: Node) -> bool:
    """Whether a constant behind a product of open sizes, or of two tensors, differs between rows or heads."""
    if node.get_type_name() != "MatMul":
        return False
    static = None not in (shape_of(node.output(0)) or (None,)) and isinstance(node.input_value(1).get_node(), Constant)
    constants = (constant_above(link.input_value(1)) for link in _affine_links(node))
    return not static and any(max(values.shape[:-1], default=1) > 1 for values in constants)


def _convert_input(node: Node, operation: Callable[[Node, Output], Node]) -> None:
    plain = operation(opset1.convert(node.input_value(0), precision_of(node.input_value(1))), node.input_value(1))
    plain.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), plain.output(0))


def _add_negative(subtract: Node) -> None:
    negative = constant(-constant_above(subtract.input_value(1)), precision_of(subtract.input_value(1)))
    new = relaxed(
        "Add",
        [subtract.input_value(0), negative.output(0)],
        precision_of(subtract.output(0)),
        {"auto_broadcast": "numpy"},
    )
    new.set_friendly_name(subtract.get_friendly_name())
    replace_output(subtract.output(0), new.output(0))


def _sibling_numbers(subtracts: list[Node]) -> dict[int, int]:
    """By instance, how many Subtracts of the same tensor come before one."""
    siblings: dict[tuple[int, int], list[Node]] = defaultdict(list)
    for node in subtracts:
        source = node.input_value(0)
        siblings[source.get_node().get_instance_id(), source.get_index()].append(node)
    return {node.get_instance_id(): number for group in siblings.values() for number, node in enumerate(group)}


def _keep_apart(node: Node, number: int) -> None:
    """The node with a length of its input type list that is its own among its siblings."""
    output = precision_of(node.output(0))
    apart = relaxed("Subtract", node.input_values(), output, {"auto_broadcast": "numpy"}, siblings=number)
    apart.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), apart.output(0))


_ELEMENTWISE = frozenset(
    (
        "Add",
        "Clamp",
        "Convert",
        "FakeQuantize",
        "Gelu",
        "Multiply",
        "Relu",
        "Sigmoid",
        "Subtract",
        "Swish",
        "HSwish",
        "Tanh",
    )
)


def _run_at_rank_3(node: Node) -> Node:
    """``MatMul([N, H, W, C], [C, K])`` and the elementwise operations behind it, as [N, H·W, C]; the MatMul now
    there.
    """
    shape, output_shape = shape_of(node.input_value(0)), shape_of(node.output(0))
    weights = node.input_value(1)
    plain = (
        isinstance(weights.get_node(), Constant)
        and len(weights.get_shape()) == 2
        and not node.get_attributes()["transpose_a"]
    )
    if not plain or shape is None or len(shape) != 4 or any(size is None for size in shape[1:]):
        return node
    chain = _elementwise_chain(node)
    last = chain[-1]
    flat = opset1.reshape(node.input_value(0), _target(shape[0], shape[1] * shape[2], shape[3]), False)
    targets, original = last.output(0).get_target_inputs(), last.output(0)
    new = relaxed_like(node, [flat.output(0), weights], precision_of(node.output(0)))
    replace_output(node.output(0), new.output(0))
    for link in chain[1:]:
        for port in range(link.get_input_size()):
            source = link.input_value(port).get_node()
            if isinstance(source, Constant) and len(source.get_output_shape(0)) == 4:
                values = values_of(source)
                squeezed = values.reshape(values.shape[0], -1, values.shape[3])
                link.input(port).replace_source_output(
                    constant(squeezed, precision_of(link.input_value(port))).output(0)
                )
        link.validate_and_infer_types()
    end = new.output(0) if last is node else original
    shaped = opset1.reshape(end, _target(*output_shape), False)
    last = end.get_node()
    shaped.set_friendly_name(last.get_friendly_name())
    last.set_friendly_name(f"{last.get_friendly_name()}/Rank3")
    for target in targets:
        target.replace_source_output(shaped.output(0))
    move_tensor_names(end, shaped.output(0))
    return new


def _target(*sizes: int | None) -> Node:
    return constant(np.array([-1 if size is None else size for size in sizes]), "i64")


def _elementwise_chain(node: Node) -> list[Node]:
    """The node and the single-consumer elementwise operations behind it, each with constants as its other inputs."""
    chain = [node]
    while True:
        targets = list(chain[-1].output(0).get_target_inputs())
        if len(targets) != 1:
            return chain
        follower = targets[0].get_node()
        others = [
            follower.input_value(port).get_node()
            for port in range(follower.get_input_size())
            if port != targets[0].get_index()
        ]
        if follower.get_type_name() not in _ELEMENTWISE or not all(
            isinstance(other, Constant) and _flattens(other) for other in others
        ):
            return chain
        chain.append(follower)


def _flattens(node: Constant) -> bool:
    """Whether a constant still broadcasts once H and W are one axis."""
    shape = tuple(node.get_output_shape(0))
    return (
        len(shape) <= 1
        or (len(shape) <= 3 and all(size == 1 for size in shape[:-1]))
        or (len(shape) == 4 and shape[1:3] == (1, 1))
    )
