"""Type-relaxed operations: the only file that knows how they are made.

The native library lets an operation read low precision inputs and still report a real output through a C++ wrapper,
``ov::op::TypeRelaxed``, that Python has no class for. An IR layer of the wrapper's own opset is read back as such a
node, though. So each kind of node (operation, attributes, types) is read once, as a template whose shapes are wholly
dynamic; its clones are rewired. A template holds several such nodes, since most of a clone's time goes to the model
around them: a node from a clone of eight takes 0.015 ms, one from a clone of its own 0.05 ms.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Mapping, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from ovlpt.graph.constants import precision_of, same_operation
from ovlpt.openvino_api import RELAXES_EVERY_OPSET, RELEASE, Core, Model, Node, Output, relaxed_version
from ovlpt.trace import OvlptError, reject

# What the CPU plugin tries before all others, by its own names: int8 convolutions that are not of oneDNN's brgemm.
_PRIORITY = "primitives_priority"
_OLDER_KERNELS = f'<attribute name="{_PRIORITY}" version="0" value="%s"/>' % ",".join(
    f"cpu:jit_{isa}{kind}" for isa in ("avx512_amx", "avx512", "avx2") for kind in ("_dw", "_1x1", "")
)
# Inputs that hold axes, sizes or shapes: the last ones. They keep their own type, since the list of types ends before
# them: read as f32, an axis becomes 12884901890, and releases name the type that says so in different ways.
_INDEX_INPUTS = {
    "ConvolutionBackpropData": (2,),
    "GroupConvolutionBackpropData": (2,),
    "Interpolate": (1, 2, 3),
    "MVN": (1,),
    "NormalizeL2": (1,),
    "ReduceMean": (1,),
    "ReduceSum": (1,),
}
_REAL_INDEX_INPUTS = {("Interpolate", 2)}  # the scales of Interpolate-4
_FIRST_OPSET = {"MVN": "opset2"}
_RELAXATION = frozenset(("type_relax", "input_data_types", "output_data_types"))
_SIZE = 8  # nodes of a template
# Keeps a node's types where a plugin makes f16 of f32: what releases since 2026 read, and those before.
_KEPT_IN_F32 = (
    '<attribute name="DisablePrecisionConversion" version="0" value="dynamic:f16"/>'
    '<attribute name="precise" version="0"/>'
)


@functools.cache
def _core() -> Core:
    core = Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin, which brings the relaxed operations' opset
    return core


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_text(item) for item in value)
    return str(value)


class _Template:
    """Nodes of one kind, as many as are asked for."""

    def __init__(self, model: Model):
        self._model = model
        self._spare: list[Node] = []

    def node(self) -> Node:
        try:
            return self._spare.pop()
        except IndexError:
            node, *spare = (result.input_value(0).get_node() for result in self._model.clone().get_results())
            self._spare += spare
            return node


_Kind = tuple[Any, ...]  # what `_template` takes, the attributes as printed
_templates: dict[_Kind, _Template] = {}
atexit.register(_templates.clear)  # before plugins are unloaded: a node that outlives them ends the process by a signal


def _template(
    operation: str,
    opset: str,
    attributes: Mapping[str, object],
    inputs: int,
    origin: str,
    siblings: int,
    outputs: str,
    in_f32: bool,
    older_kernels: bool,
) -> _Template:
    index = _INDEX_INPUTS.get(operation, ())
    origins = ", ".join([origin] * (inputs - sum(port < inputs for port in index) + siblings))
    layers, edges = [], []
    for port in range(inputs):
        kind = "i64" if port in index and (operation, port) not in _REAL_INDEX_INPUTS else "f32"
        layers.append(
            f'<layer id="{port}" name="i{port}" type="Parameter" version="opset1">'
            f'<data shape="..." element_type="{kind}"/><output><port id="0" precision="{kind}"/></output></layer>'
        )
    data = "".join(
        f" {name}={quoteattr(_text(value))}"
        for name, value in attributes.items()
        if name not in _RELAXATION and value is not None
    )
    ports = "".join(f'<port id="{port}"/>' for port in range(inputs))
    notes = f"<rt_info>{_KEPT_IN_F32 * in_f32}{_OLDER_KERNELS * older_kernels}</rt_info>"
    for node in range(inputs, inputs + 2 * _SIZE, 2):
        layers.append(
            f'<layer id="{node}" name="relaxed{node}" type="{operation}" version="{relaxed_version(opset)}">'
            f'<data{data} type_relax="true" input_data_types="{origins}" output_data_types="{outputs}"/>{notes}'
            f'<input>{ports}</input><output><port id="{inputs}" precision="{outputs}"/></output></layer>'
            f'<layer id="{node + 1}" name="r{node}" type="Result" version="opset1"><input><port id="0"/></input></layer>'
        )
        edges += [
            f'<edge from-layer="{port}" from-port="0" to-layer="{node}" to-port="{port}"/>' for port in range(inputs)
        ]
        edges.append(f'<edge from-layer="{node}" from-port="{inputs}" to-layer="{node + 1}" to-port="0"/>')
    xml = f'<net name="t" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>'
    try:
        return _Template(_core().read_model(xml.encode(), b""))
    except RuntimeError as error:
        release = ".".join(map(str, RELEASE))
        raise OvlptError(
            f"OpenVINO {release} cannot make a type-relaxed {operation} of {opset}: {str(error).strip().splitlines()[-1]}"
        ) from error


def relaxed(
    operation: str,
    inputs: Sequence[Output],
    output_precision: str,
    attributes: Mapping[str, object] | None = None,
    opset: str = "opset1",
    origin: str = "f32",
    siblings: int = 0,
    in_f32: bool = False,
    older_kernels: bool = False,
) -> Node:
    """A type-relaxed node: it validates as if its inputs had type ``origin`` and reports ``output_precision``.

    ``siblings`` lengthens the list of input types, which validation ignores but which keeps OpenVINO's
    ``SharedOpOptimization`` from merging otherwise equal nodes. ``in_f32``: the node keeps reading f32 where a plugin
    runs the model in f16. ``older_kernels``: the CPU plugin takes oneDNN's older kernels for it, those before brgemm, where
    they have a form of the layer.
    Raises `Rejected` for an operation of a later opset before 2025.2, which can relax only the first version of each, and
    `OvlptError` where the installed OpenVINO cannot make the node at all.
    """
    if not RELAXES_EVERY_OPSET and opset != _FIRST_OPSET.get(operation, "opset1"):
        # the version string of those releases has no opset in it, and another version would be read silently
        reject("release", f"OpenVINO {RELEASE[0]}.{RELEASE[1]} cannot make a type-relaxed {operation} of {opset}")
    attributes = attributes or {}
    more = len(inputs), origin, siblings, output_precision, in_f32, older_kernels
    node = _kept_template(operation, opset, attributes, *more).node()
    node.set_arguments(list(inputs))
    node.set_friendly_name(node.get_name())
    node.validate_and_infer_types()
    return node


def _kept_template(operation: str, opset: str, attributes: Mapping[str, object], *more: Any) -> _Template:
    """`_template`, made once."""
    kind = operation, opset, repr(attributes), *more
    if kind not in _templates:
        _templates[kind] = _template(operation, opset, attributes, *more)
    return _templates[kind]


def relaxed_like(node: Node, inputs: Sequence[Output], output_precision: str, origin: str = "f32") -> Node:
    """The type-relaxed form of ``node`` on other inputs, with its attributes and its friendly name."""
    opset = node.get_type_info().version_id
    result = relaxed(node.get_type_name(), inputs, output_precision, node.get_attributes(), opset, origin)
    result.set_friendly_name(node.get_friendly_name())
    return result


def same_on(node: Node, inputs: Sequence[Output]) -> Node:
    """A new node that does to other inputs what ``node`` does to its own, of its friendly name, relaxed where it is."""
    if is_relaxed(node):
        return relaxed_like(node, inputs, precision_of(node.output(0)))
    result = same_operation(node, list(inputs))
    result.set_friendly_name(node.get_friendly_name())
    return result


def is_relaxed(node: Node) -> bool:
    return "type_relax" in node.get_attributes()


def has_older_kernels(node: Node) -> bool:
    """Whether the CPU plugin is asked for them (`relaxed`)."""
    return f"{_PRIORITY}_0" in node.get_rt_info()


def can_be_relaxed(node: Node, output_precision: str = "f32", origin: str = "f32") -> bool:
    """Whether the installed OpenVINO can make the type-relaxed form: before 2025.2 only of the first opset's operations,
    and never of those that no plugin takes so, as ReduceL1.
    """
    opset = node.get_type_info().version_id
    if opset != "opset1" and not (RELAXES_EVERY_OPSET and opset.startswith("opset")):  # or it is the caller's own
        return False
    try:
        more = node.get_input_size(), origin, 0, output_precision, False, False
        _kept_template(node.get_type_name(), opset, node.get_attributes(), *more)
    except OvlptError:
        return False
    return True
