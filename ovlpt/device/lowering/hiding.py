"""What keeps constants apart until the plugin has looked at them.

In a saved model a zero is added to them: the LogSoftmax of a single value. OpenVINO evaluates no LogSoftmax, so that
whoever reads the model and folds its constants leaves the sum. The plugin decomposes it, and folds what comes of it,
after it has looked for quantization and before it fuses anything into a FakeQuantize. Bodies of operations are left
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ovlpt import plugin_config
from ovlpt.graph.constants import constant, is_constant_path, kept_apart, precision_of, values_of
from ovlpt.graph.fake_quantize_node import fake_quantize_node
from ovlpt.graph.recurrent import sources
from ovlpt.graph.relaxed import is_relaxed
from ovlpt.openvino_api import Constant, Model, Node, NodeFactory, Output, PartialShape, opset1
from ovlpt.operations import RECURRENT, WEIGHTED
from ovlpt.operations.families import AFFINE
from ovlpt.precisions import FLOAT8, INT8, REAL

_FACTORS = ("Divide", "Multiply", "Negative")


def hide_from_lpt(model: Model) -> list[Node]:
    """Hide the highest output value of each FakeQuantize from the plugin's own LPT.

    Compiled with that on, a model would be transformed a second time, which loses zero points and changes numbers. The
    plugin turns its LPT on where a FakeQuantize has four Constants.
    """
    quantizes = [node for node in model.get_ordered_ops() if node.get_type_name() == "FakeQuantize"]
    return _hide([node.input(4) for node in quantizes])


def hide_from_stripping(model: Model) -> list[Node]:
    """Hide the highest output value of each FakeQuantize of so many levels that the plugin drops it, with what it clips.

    Those of the user's model are gone by then, as in stock (`ovlpt.qdq_stripping`). Others were made of a quantization and a
    dequantization in 16 bits, which the plugin keeps.
    """
    dropped = plugin_config.dropped_levels("CPU")
    quantizes = [node for node in model.get_ordered_ops() if node.get_type_name() == "FakeQuantize"]
    return _hide([node.input(4) for node in quantizes if node.get_attributes()["levels"] in dropped])


def hide_real_values(model: Model) -> list[Node]:
    """Hide what is quantized and stays in real numbers from the plugin's own LPT, which has to be on for recurrent layers.

    What reads it takes no integers, for a reason; the plugin's LPT would try it again by its own rules. Recurrent layers
    have what they read as it is.
    """
    read = _read_by_recurrent_layers(model.get_ordered_ops())
    changed = []
    for node in model.get_ordered_ops():
        if node.get_type_name() != "FakeQuantize" or node.get_instance_id() in read:
            continue
        data, *_, highest = (value.get_node() for value in node.input_values())
        is_real = precision_of(node.output(0)) in REAL and not isinstance(data, Constant)
        if is_real and isinstance(highest, Constant):
            node.input(4).replace_source_output(_folded_late(highest, precision_of(node.input_value(4))))
            _keep_from_factors(node)
            changed.append(node)
    return changed


def _keep_from_factors(quantize: Node) -> None:
    """Keep what is multiplied by constants apart from a FakeQuantize: the plugin would take the factor into its interval,
    and compute that anew.
    """
    value = quantize.output(0)
    targets = [each for each in value.get_target_inputs() if each.get_node().get_type_name() in _FACTORS]
    if targets:
        apart = kept_apart(value).output(0)
        for target in targets:
            target.replace_source_output(apart)


def _read_by_recurrent_layers(nodes: Iterable[Node]) -> set[int]:
    """What gives the values that recurrent layers read, by instance."""
    values = [value for node in nodes if node.get_type_name() in RECURRENT for value in node.input_values()]
    return {each.get_node().get_instance_id() for value in values for each in sources(value)}


def hide_recurrent_weights(model: Model) -> list[Node]:
    """Hide integer weights of recurrent layers from constant folding, which makes floats of them with their scale.

    The plugin's LPT marks the scale before the weights are a Constant again; then it forms a quantized layer.
    """
    layers = [node for node in model.get_ordered_ops() if node.get_type_name() in RECURRENT]
    scales = [node.input_value(port).get_node() for node in layers for port in RECURRENT[node.get_type_name()]]
    converts = [node.input_value(0).get_node() for node in scales if node.get_type_name() == "Multiply"]
    apart = {node.get_instance_id(): node for node in converts if node.get_type_name() == "Convert"}
    return _hide([node.input(0) for node in apart.values()])


def hide_zero_points(model: Model) -> list[Node]:
    """Hide the zero point of a layer from the plugin's own LPT, which has to be on for recurrent layers.

    It would fuse it into a FakeQuantize that nothing else reads, and the layer would run in float. A FakeQuantize of the
    constant, which changes nothing, is folded after that only.
    """
    changed = []
    for node in model.get_ordered_ops():
        if node.get_type_name() != "Subtract" or not is_relaxed(node):
            continue
        quantize, zero_point = (value.get_node() for value in node.input_values())
        if quantize.get_type_name() == "FakeQuantize" and isinstance(zero_point, Constant):
            node.input(1).replace_source_output(_folded_late(zero_point, precision_of(node.input_value(1))))
            changed.append(node)
    return changed


def hide_padding(model: Model) -> list[Node]:
    """Hide the value that a Pad adds from the plugin's own LPT, as `hide_zero_points` does.

    It would move the Pad before the scale of its data, and make the nearest integer of the value.
    """
    changed = []
    for node in model.get_ordered_ops():
        if node.get_type_name() != "Pad" or node.get_input_size() < 4 or precision_of(node.output(0)) not in REAL:
            continue
        value = node.input_value(3).get_node()
        if isinstance(value, Constant) and np.any(values_of(value)):
            node.input(3).replace_source_output(_folded_late(value, precision_of(node.input_value(3))))
            changed.append(node)
    return changed


def _folded_late(stored: Constant, precision: str) -> Output:
    """A FakeQuantize of a constant that leaves its values as they are, each the middle of three levels, or the end of them
    where the interval would reach beyond f32. Infinite ones, by which masks hide, become its least or its largest number:
    of others a FakeQuantize makes no number.
    """
    largest = np.finfo(np.float32).max
    values = np.clip(values_of(stored).astype(np.float32), -largest, largest)
    is_end = np.abs(values) >= largest / 2
    step = np.where(is_end, np.float32(0), np.where(values == 0, np.float32(1), np.abs(values)))
    low = np.where(is_end & (values > 0), np.float32(0), values - step)
    high = np.where(is_end & (values < 0), np.float32(0), values + step)
    ends = [constant(each).output(0) for each in (low, high)] * 2
    return fake_quantize_node(constant(values).output(0), ends, 3, precision).output(0)


def _fold_late(link: Node, port: int = 1) -> None:
    """Let the constant that is added or multiplied be folded late."""
    stored = link.input_value(port)
    late, precision = _folded_late(stored.get_node(), "f32"), precision_of(stored)
    link.input(port).replace_source_output(late if precision == "f32" else opset1.convert(late, precision).output(0))


def hide_shifts(model: Model) -> list[Node]:
    """Hide what dynamic sizes are scaled or shifted per channel with from the plugin's own LPT, as `hide_zero_points` does.

    It would take both into the next interval, or shift before the scale, either of which the plugin reads wrongly for one
    element (`scale_to_interval`, `shift_after_scale`). Where something else reads what is shifted, it would apply the scale of
    that twice, in spite of this: the maximum with the least number keeps the two apart.
    """
    nodes = [node for node in model.get_ordered_ops() if node.get_output_size() == 1]
    found = [
        node
        for node in nodes
        if node.get_output_partial_shape(0).is_dynamic
        and (
            node.get_type_name() in ("Add", "FakeQuantize") or (node.get_type_name() == "Subtract" and _is_shared(node))
        )
    ]
    changed = []
    for link in filter(None, map(_last_by_channel, found)):
        _fold_late(link)
        if _is_shared(link):
            link.input(0).replace_source_output(kept_apart(link.input_value(0)).output(0))
        changed.append(link)
    return changed


def hide_scales(model: Model) -> list[Node]:
    """Hide the scales of integers, and of what is normalized, from the plugin's own LPT, as `hide_zero_points` does.

    It would move a scale after a sum with a constant, which is then computed in the type of the integers; or after a
    normalization, and leave eps as it is. Of what `LowPrecision` leaves before one, the zero point has become an Add
    (`add_zero_point`), which does not keep it from that. Recurrent layers have what they read as it is. Of floats of 8 bits it would
    let the scale read these themselves, for which there is no kernel. And it would take the scale into the interval of one FakeQuantize
    of several readers; the plugin still takes it into the layer before, and the FakeQuantize has it twice.
    """
    nodes = model.get_ordered_ops()
    read = _read_by_recurrent_layers(nodes)
    normalizations = (node for node in nodes if node.get_type_name() in ("MVN", "NormalizeL2"))
    found = [factor for node in normalizations if not is_relaxed(node) for factor in _factors_above(node)]
    found += [(node, 1) for node in nodes if _scales_integers(node) and node.get_instance_id() not in read]
    found += [(node, 1) for node in nodes if _computes_with_float8(node)]
    found += [(link, 1) for link in map(_shared_link, nodes) if link is not None]
    changed = {node.get_instance_id(): (node, port) for node, port in found}.values()
    for node, port in changed:
        _fold_late(node, port)
    return [node for node, _ in changed]


def _scales_integers(node: Node) -> bool:
    """Whether a constant is the scale of integers, with or without a zero point."""
    if node.get_type_name() != "Multiply" or not isinstance(node.input_value(1).get_node(), Constant):
        return False
    value = node.input_value(0)
    while precision_of(value) in REAL and value.get_node().get_type_name() in ("Add", "Convert", "Subtract"):
        value = value.get_node().input_value(0)
    return precision_of(value) in INT8 and not is_constant_path(value.get_node())


def _computes_with_float8(node: Node) -> bool:
    """Whether a constant is added to, or multiplied with, what was floats of 8 bits just before."""
    if node.get_type_name() not in AFFINE or not isinstance(node.input_value(1).get_node(), Constant):
        return False
    convert = node.input_value(0).get_node()
    return convert.get_type_name() == "Convert" and precision_of(convert.input_value(0)) in FLOAT8


def _factors_above(node: Node) -> Iterator[tuple[Node, int]]:
    """The constants that data is multiplied with or divided by, or that it divides, up to what gives the data."""
    while (
        len(data := [value.get_node() for value in node.input_values() if not is_constant_path(value.get_node())]) == 1
    ):
        node = data[0]
        if node.get_type_name() in WEIGHTED | {"FakeQuantize"}:
            return
        if node.get_type_name() in _FACTORS:
            ports = enumerate(node.input_values())
            yield from ((node, port) for port, value in ports if isinstance(value.get_node(), Constant))


def _shared_link(quantize: Node) -> Node | None:
    """What scales or shifts the data of a FakeQuantize by a constant, where something else reads that as well."""
    if quantize.get_type_name() != "FakeQuantize" or is_constant_path(quantize) or not _is_shared(quantize):
        return None
    data = quantize.input_value(0)
    while (node := data.get_node()).get_type_name() == "Convert":
        data = node.input_value(0)
    if node.get_type_name() not in AFFINE or precision_of(data) not in REAL:
        return None
    return node if isinstance(node.input_value(1).get_node(), Constant) else None


def _is_shared(node: Node) -> bool:
    """Whether something else reads the real numbers that a node reads first, converted or not."""
    data = node.input_value(0)
    if precision_of(data) not in ("f32", "f16"):
        return False
    while len(data.get_target_inputs()) == 1 and data.get_node().get_type_name() == "Convert":
        data = data.get_node().input_value(0)
    return len(data.get_target_inputs()) > 1


def _last_by_channel(node: Node) -> Node | None:
    """The last of the scales and shifts before a FakeQuantize, or up to an Add, where one of them differs between channels."""
    links: list[Node] = []
    node = node.input_value(0).get_node() if node.get_type_name() == "FakeQuantize" else node
    while (kind := node.get_type_name()) in AFFINE | {"Convert"}:
        if kind != "Convert":
            if not isinstance(node.input_value(1).get_node(), Constant):
                break
            links.append(node)
        node = node.input_value(0).get_node()
    differs = any(values_of(link.input_value(1).get_node()).size > 1 for link in links)
    return links[0] if differs else None


def _hide(inputs: list) -> list[Node]:
    """Add a zero to each Constant that is read; the nodes that read it. Equal zeros would be merged, and what they are added to into one
    Constant: the plugin takes no FakeQuantize into a layer that shares one. So each is an output of its own.
    """
    inputs = [each for each in inputs if isinstance(each.get_source_output().get_node(), Constant)]
    if not inputs:
        return []
    logarithms = NodeFactory("opset5").create("LogSoftmax", [constant(np.zeros((len(inputs), 1)))], {"axis": 1})
    row = opset1.squeeze(logarithms, constant(np.array([1]), "i64"))
    zeros = opset1.split(row, constant(np.array(0), "i64"), len(inputs))
    for each, zero in zip(inputs, zeros.outputs(), strict=True):
        value, data = each.get_source_output(), each.get_node().output(0)
        if precision_of(value) != "f32":
            zero = opset1.convert(zero, precision_of(value)).output(0)
        if data.get_partial_shape() == PartialShape([]):
            zero = opset1.squeeze(zero, constant(np.array([0]), "i64")).output(0)
        each.replace_source_output(opset1.add(value, zero).output(0))
    return [each.get_node() for each in inputs]
