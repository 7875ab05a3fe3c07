"""What a GPU that runs a model in half precision (f16) keeps in f32: sums of integers, their scales, and what follows up
to the next quantization.

A half holds no number above 65504 and none of more than 11 bits, and loses bits below 6e-5: the sums of a layer break
the first two limits, their scales the third. The plugin changes f32 to f16 before everything else. Two things do not
follow that change: the type that a relaxed operation reports, and constants of f64, which become f32. So a relaxed
operation between a layer and its scale keeps reporting f32, and reads constants of f64. Where the numbers leave the
layer, the last operation reports f16, and a Convert to f32 after it goes with the change.
"""

from __future__ import annotations

import numpy as np

from ovlpt.device.lowering.element_types import meets_weights
from ovlpt.device.lowering.gpu import quantizes_input, read_input_in_f32
from ovlpt.device.lowering.links import guard_output
from ovlpt.device.lowering.zero_points import sibling_numbers
from ovlpt.graph.bodies import all_nodes
from ovlpt.graph.constants import (
    constant,
    constant_above,
    is_constant_path,
    is_real,
    precision_of,
    same_operation,
    values_of,
)
from ovlpt.graph.consumers import consumers_of, is_output, readers_of
from ovlpt.graph.names import ORIGINAL_SUFFIX, Made, made_for
from ovlpt.graph.relaxed import is_relaxed, relaxed
from ovlpt.graph.shapes import shape_of
from ovlpt.layer_transformation import replace_output
from ovlpt.openvino_api import Constant, Model, Node, Output, opset1
from ovlpt.operations import OPERATIONS, WEIGHTED
from ovlpt.operations.families import ACTIVATIONS, AFFINE, ARITHMETIC
from ovlpt.precisions import INT8

# What becomes part of the kernel of a layer, beside affine operations with constants
_POST_OPERATIONS = ACTIVATIONS | {"Abs", "Clamp", "Exp", "Floor", "Negative", "Relu", "Sqrt"}
_OF_TWO = ARITHMETIC | {"Maximum", "Minimum", "SquaredDifference"}
# Operations whose constants are numbers of the data's type, not sizes or axes
_WITH_NUMBERS = _OF_TWO | {"FakeQuantize", "PRelu"}

_OF_A_LEVEL = 0.5

_Key = tuple[int, int]  # of a value: the instance of its node, and its port


def keep_sums_in_f32(model: Model) -> list[Node]:
    """Prepare a lowered model for a GPU that runs it in f16: the nodes that report another type, or read one."""
    siblings = sibling_numbers(model)
    for node in all_nodes(model):
        if _is_neutral(node):
            replace_output(node.output(0), node.input_value(0))
        elif node.get_type_name() == "Convert":
            _read_integers(node)
    sums = _Sums(model)
    for node in sums.nodes:
        if node.get_type_name() == "Pad" and _key(node.input_value(0)) in sums.in_f32:
            _pad_in_f32(node)
    sums = _Sums(model)
    for node in sums.nodes:
        if sums.computes(node) or any(_key(value) in sums.in_f32 for value in node.outputs()):
            _scale_before_shift(node)
    for node in all_nodes(model):
        _subtract_from_shift(node)
        if node.get_type_name() == "MatMul" and _would_scale_factor(node):
            guard_output(node)
    sums = _Sums(model)
    for node in sums.nodes:
        if _key(node.output(0)) in sums.in_f32 and (layer := _float_layer_before(node)) is not None:
            guard_output(layer)
    sums, changed = _Sums(model), []
    for node in sums.nodes:
        if quantizes_input(node, model):
            read_input_in_f32(node)
            changed.append(node)
        elif _set_type(node, sums, siblings.get(node.get_instance_id(), 0)):
            changed.append(node)
    return changed


def _read_integers(convert: Node) -> None:
    """Let the first operation of a dequantization that no layer contains read the integers itself: in f16 a zero point of some
    hundreds would lose its fraction.
    """
    data = convert.input_value(0)
    if precision_of(data) not in INT8 or precision_of(convert.output(0)) != "f32" or is_constant_path(data.get_node()):
        return
    readers = readers_of(convert)
    if not readers or not all(_is_affine(each) and each.get_type_name() != "Multiply" for each in readers):
        return
    for each in readers:
        new = relaxed(each.get_type_name(), [data, each.input_value(1)], "f32", each.get_attributes())
        new.set_friendly_name(each.get_friendly_name())
        replace_output(each.output(0), new.output(0))


class _Sums:
    """The values of a model that are computed of integers, ``in_f32`` those that stay in f32 where it runs in f16."""

    def __init__(self, model: Model):
        self.nodes = all_nodes(model)
        self._results = {result.get_instance_id() for result in model.get_results()}  # not of bodies, which give f16
        self._unscaled: set[_Key] = set()  # in the scale of integers
        self._scaled: set[_Key] = set()
        for node in self.nodes:
            self._follow(node)
        self.in_f32 = set(self._unscaled)
        for node in reversed(self.nodes):
            if node.get_output_size() == 1 and self._stays(node.output(0)):
                self.in_f32.add(_key(node.output(0)))

    def computes(self, node: Node) -> bool:
        """Whether a node computes real numbers of integers, or of what follows them within a layer."""
        known = self._unscaled | self._scaled
        return self.starts(node) or any(_key(value) in known for value in node.input_values())

    def starts(self, node: Node) -> bool:
        if not is_relaxed(node) or node.get_type_name() == "FakeQuantize":
            return False
        return any(not _is_real(value) and not isinstance(value.get_node(), Constant) for value in node.input_values())

    def _follow(self, node: Node) -> None:
        kind, keys = node.get_type_name(), {_key(value) for value in node.input_values()}
        outputs = {_key(value) for value in node.outputs() if _is_real(value)}
        if self.starts(node) or not keys.isdisjoint(self._unscaled):
            if kind == "FakeQuantize" or (kind == "Multiply" and _is_affine(node)):
                self._scaled |= outputs
            elif is_relaxed(node) or self._takes_unscaled(node):
                self._unscaled |= outputs
        elif not keys.isdisjoint(self._scaled) and (kind == "FakeQuantize" or _is_affine(node) or _is_activation(node)):
            self._scaled |= outputs

    def _takes_unscaled(self, node: Node) -> bool:
        """Whether a plain operation may stand before the scale."""
        kind = node.get_type_name()
        if kind in _OF_TWO:
            return True
        if kind not in OPERATIONS or OPERATIONS[kind].kind not in ("passes", "elementwise", "reduces"):
            return False
        tensors = [value for value in node.input_values() if _is_real(value) and not is_constant_path(value.get_node())]
        return all(_key(value) in self._unscaled for value in tensors)

    def _stays(self, value: Output) -> bool:
        """Whether all that reads a scaled value belongs to the same kernel, or needs f32 itself."""
        targets = consumers_of(value)
        if not targets or not _is_real(value) or not (_key(value) in self._scaled or _is_affine(value.get_node())):
            return False
        return all(
            self._joins_unscaled(target.get_node())
            or (target.get_index() == 0 and self._reads_f32(target.get_node(), _key(value) in self._scaled))
            for target in targets
        )

    def _joins_unscaled(self, node: Node) -> bool:
        """A branch in the scale of the integers of another: of a residual connection."""
        return node.get_type_name() in _OF_TWO and _key(node.output(0)) in self._unscaled

    def _reads_f32(self, node: Node, is_scaled: bool) -> bool:
        stays = node.get_output_size() == 1 and _key(node.output(0)) in self.in_f32
        if not is_scaled:
            return stays and _is_affine(node)
        ends = node.get_type_name() == "FakeQuantize" or node.get_instance_id() in self._results
        return stays or ends or _is_affine(node)


def _is_neutral(node: Node) -> bool:
    """Whether it adds 0 or multiplies by 1, as a mask that masks nothing does.

    The plugin leaves it out, with the type that it was to report.
    """
    data = node.input_value(0) if _is_affine(node) else None
    if data is None or is_output(node.output(0)) or not _is_real(data) or is_constant_path(data.get_node()):
        return False
    neutral, value = float(node.get_type_name() == "Multiply"), constant_above(node.input_value(1))
    sizes, before = shape_of(node.output(0)), shape_of(data)
    if value is None or sizes is None or sizes != before or (value.size > 1 and None in sizes):
        return False
    return bool((value == neutral).all())


def _would_scale_factor(product: Node) -> bool:
    """Whether the plugin would move a scale after a MatMul of floats into the ends of a FakeQuantize before it: those are of
    f32, and the scale's of f16.
    """
    factors = [value.get_node() for value in product.input_values()]
    factors = [each.input_value(0).get_node() if each.get_type_name() == "Convert" else each for each in factors]
    if is_relaxed(product) or all(each.get_type_name() != "FakeQuantize" for each in factors):
        return False
    node = product
    while len(readers := list(consumers_of(node.output(0)))) == 1 and _is_affine(node := readers[0].get_node()):
        if node.get_type_name() == "Multiply":
            return True
    return False


def _float_layer_before(node: Node) -> Node | None:
    """The layer of floats, with weights, that a scale follows: one of f32 would be fused into weights of f16, which throws."""
    if node.get_type_name() != "Multiply" or not _is_affine(node):
        return None
    layer = node.input_value(0).get_node()
    is_layer = layer.get_type_name() in WEIGHTED and not is_relaxed(layer)
    return layer if is_layer and is_constant_path(layer.input_value(1).get_node()) else None


def _set_type(node: Node, sums: _Sums, siblings: int) -> bool:
    """Let a node report f32 or f16, as its value is wanted, and read its constants as it reads its data.

    Whether that changes it.
    """
    outputs, kind = node.outputs(), node.get_type_name()
    reads_f32 = any(_key(value) in sums.in_f32 for value in node.input_values())
    # the ends of an interval, rounded to f16, would move a value by up to an eighth of a level
    quantizes = kind == "FakeQuantize" and not _is_real(outputs[0])
    stays = quantizes or any(_key(value) in sums.in_f32 for value in outputs)
    if stays:
        mixes = kind in _OF_TWO and not all(_key(value) in sums.in_f32 for value in node.input_values())
        if siblings or mixes or _numbers(node):
            new = _anew(node, precision_of(outputs[0]), siblings, in_f32=True)
            replace_output(node.output(0), new.output(0))
            if _is_real(outputs[0]):
                sums.in_f32.add(_key(new.output(0)))
            return True
    elif all(isinstance(value.get_node(), Constant) for value in node.input_values()):
        return False  # weights less their zero point
    elif is_relaxed(node) or (reads_f32 and _numbers(node)) or _is_narrow(node):
        if precision_of(outputs[0]) == "f32":
            if _has_twin(node, sums):
                _read_next_number(node)
            _leave_layer(node, siblings, reads_f32 or sums.starts(node) or _is_narrow(node))
            return True
    elif reads_f32 and kind not in ("Result", "ShapeOf"):
        for port, value in enumerate(node.input_values()):
            if _key(value) in sums.in_f32:
                node.input(port).replace_source_output(opset1.convert(opset1.convert(value, "f16"), "f32").output(0))
        return True
    return False


def _has_twin(node: Node, sums: _Sums) -> bool:
    """Whether the same operation of the same data and numbers stays in f32: the plugin would take the two for one, whatever
    they report.
    """
    kind, source = node.get_type_name(), node.input_value(0)
    readers = (target.get_node() for target in consumers_of(source))
    return any(
        each.get_type_name() == kind and _key(each.output(0)) in sums.in_f32 and _reads_the_same(each, node)
        for each in readers
    )


def _reads_the_same(one: Node, other: Node) -> bool:
    """Whether the inputs of both are the same values, or equal constants."""
    if one.get_input_size() != other.get_input_size():
        return False
    for mine, its in zip(one.input_values(), other.input_values(), strict=True):
        if _key(mine) == _key(its):
            continue
        if not isinstance(mine.get_node(), Constant) or not isinstance(its.get_node(), Constant):
            return False
        if not np.array_equal(values_of(mine.get_node()), values_of(its.get_node())):
            return False
    return True


def _read_next_number(node: Node) -> None:
    """A constant that differs by the last bit of f32, which f16 does not show, and which makes the operation another one."""
    value = node.input_value(1)
    if isinstance(value.get_node(), Constant):
        numbers = np.nextafter(values_of(value.get_node()).astype(np.float32), np.float32(np.inf))
        node.input(1).replace_source_output(constant(numbers, precision_of(value)).output(0))


def _is_narrow(node: Node) -> bool:
    """Whether a FakeQuantize has an interval whose ends f16 moves by much of a level, as around 1 that of a mask: two that
    become equal make it infinite.
    """
    ends = (
        [constant_above(value) for value in node.input_values()[1:3]] if node.get_type_name() == "FakeQuantize" else []
    )
    if not ends or any(end is None for end in ends):
        return False
    step = np.abs(ends[1] - ends[0]) / (node.get_attributes()["levels"] - 1)
    with np.errstate(over="ignore"):
        halves = [end.astype(np.float16).astype(end.dtype) for end in ends]
    return any(bool((abs(end - half) > _OF_A_LEVEL * step).any()) for end, half in zip(ends, halves, strict=True))


def _leave_layer(node: Node, siblings: int, in_f32: bool) -> None:
    """The node reports f16, and a Convert after it f32. A scale is guarded from a float layer's weights."""
    name, scales_weights = node.get_friendly_name(), node.get_type_name() == "Multiply" and meets_weights(node)
    names = (name + ORIGINAL_SUFFIX, name) if is_output(node.output(0)) else (name, made_for(name, Made.REAL))
    new = _anew(node, "f16", siblings, in_f32)
    convert = opset1.convert(new.output(0), "f32")
    for each, text in zip((new, convert), names, strict=True):
        each.set_friendly_name(text)
    replace_output(node.output(0), convert.output(0))
    if scales_weights:
        guard_output(convert)


def _anew(node: Node, reported: str, siblings: int, in_f32: bool) -> Node:
    """The relaxed form of a node in its place, which reports another type; ``in_f32``: and reads its constants in f32."""
    inputs, numbers = node.input_values(), _numbers(node) if in_f32 else ()
    inputs = [_in_f64(value) if port in numbers else value for port, value in enumerate(inputs)]
    kind, opset = node.get_type_name(), node.get_type_info().version_id
    new = relaxed(kind, inputs, reported, node.get_attributes(), opset, siblings=siblings)
    new.set_friendly_name(node.get_friendly_name())
    return new


def _in_f64(value: Output) -> Output:
    """A constant, or the Reshape of one that hides it, with numbers of f64, which the plugin makes f32 of."""
    node = value.get_node()
    if isinstance(node, Constant):
        return constant(values_of(node), "f64").output(0)
    return opset1.reshape(_in_f64(node.input_value(0)), node.input_value(1), False).output(0)


def _numbers(node: Node) -> list[int]:
    """Inputs with constants of the data's type."""
    if node.get_type_name() not in _WITH_NUMBERS:
        return []
    return [port for port, value in enumerate(node.input_values()) if _is_real(value) and _is_constant(value)]


def _is_constant(value: Output) -> bool:
    node = value.get_node()
    return isinstance(node.input_value(0).get_node() if node.get_type_name() == "Reshape" else node, Constant)


def _is_affine(node: Node) -> bool:
    """Adds, subtracts or multiplies by a constant."""
    return node.get_type_name() in AFFINE and 1 in _numbers(node) and 0 not in _numbers(node)


def _is_activation(node: Node) -> bool:
    return node.get_type_name() in _POST_OPERATIONS and node.get_input_size() == 1


def _is_real(value: Output) -> bool:
    return is_real(precision_of(value))


def _key(value: Output) -> _Key:
    return value.get_node().get_instance_id(), value.get_index()


def _scale_before_shift(node: Node) -> None:
    """A run of Multiply, Add and Subtract operations with constants, which ends with ``node``, as ``x * s + b``.

    The plugin would do so, with operations that are not relaxed and report another type than those that they replace.
    """
    links = _run_to(node)
    kinds = "".join(link.get_type_name()[0] for link in links)  # of Multiply, Add, Subtract
    if len(links) < 2 or kinds in ("MA", "MS") or _is_read_in_run(node):
        return
    scale, shift = np.ones((), np.float64), np.zeros((), np.float64)
    for kind, link in zip(kinds, links, strict=True):
        values = constant_above(link.input_value(1)).astype(np.float64)
        if kind == "M":
            scale, shift = scale * values, shift * values
        else:
            shift = shift + values if kind == "A" else shift - values
    name, value = node.get_friendly_name(), links[0].input_value(0)
    for kind, values in ("Multiply", scale), ("Add", shift):
        value = relaxed(kind, [value, constant(values).output(0)], "f32", {"auto_broadcast": "numpy"}).output(0)
        value.get_node().set_friendly_name(made_for(name, kind))
    value.get_node().set_friendly_name(name)
    replace_output(node.output(0), value)
    # a reference to it would count among the readers of its data
    links[0].input(0).replace_source_output(links[0].input_value(1))


def _pad_in_f32(pad: Node) -> None:
    """``pad(x, v)`` as ``pad(x - v, 0) + v``, with a zero that stays f32: the plugin would make f16 of a constant, and a Pad
    of f32 with it throws. The zero is a difference of integers whose own type is i16, which is not folded.
    """
    value = constant_above(pad.input_value(3)) if pad.get_input_size() > 3 else np.zeros(())
    if value is None or pad.get_attributes()["pad_mode"] != "constant":
        return
    name, shift = pad.get_friendly_name(), float(value)
    ones = [constant(np.array(1), "u8").output(0) for _ in range(2)]  # less 0 would be dropped
    zero = relaxed("Subtract", ones, "f32", {"auto_broadcast": "numpy"}, origin="i16")
    last = same_operation(pad, [_shifted(pad.input_value(0), -shift), *pad.input_values()[1:3], zero.output(0)])
    last.set_friendly_name(name)
    if shift:
        last.set_friendly_name(made_for(name, Made.ZERO_POINT))
        last = _shifted(last.output(0), shift).get_node()
        last.set_friendly_name(name)
    replace_output(pad.output(0), last.output(0))
    # a reference to it would count among the readers of its data
    pad.input(0).replace_source_output(zero.output(0))


def _shifted(value: Output, shift: float) -> Output:
    """What stays in f32, plus a number."""
    if not shift:
        return value
    inputs = [value, constant(np.array(shift), "f64").output(0)]
    return relaxed("Add", inputs, "f32", {"auto_broadcast": "numpy"}).output(0)


def _subtract_from_shift(node: Node) -> None:
    """``x * -1 + b`` as ``b - x``. The plugin would do so, with an operation that is not relaxed, as above. Of integers it
    would make a sum again, in their own type, which throws.
    """
    if node.get_type_name() != "Add" or not is_relaxed(node) or not _is_affine(node):
        return
    negated = node.input_value(0).get_node()
    if negated.get_type_name() != "Multiply" or not _is_affine(negated):
        return
    if not (constant_above(negated.input_value(1)) == -1).all():
        return
    data = negated.input_value(0)
    wide = data if is_real(precision_of(data)) else opset1.convert(data, "f32").output(0)
    inputs = [node.input_value(1), wide]
    difference = relaxed("Subtract", inputs, precision_of(node.output(0)), node.get_attributes())
    difference.set_friendly_name(node.get_friendly_name())
    replace_output(node.output(0), difference.output(0))


def _run_to(node: Node) -> list[Node]:
    """The affine operations that end with ``node``, each but the last with one reader."""
    links: list[Node] = []
    while _is_affine(node) and (not links or len(node.output(0).get_target_inputs()) == 1):
        links.insert(0, node)
        node = node.input_value(0).get_node()
    return links


def _is_read_in_run(node: Node) -> bool:
    readers = readers_of(node)
    return len(readers) == 1 and _is_affine(readers[0])
