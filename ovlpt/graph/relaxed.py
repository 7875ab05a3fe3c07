"""Type-relaxed operations: the only file that knows how they are made.

The native library lets an operation read low precision inputs and still report a real output through a C++ wrapper,
``ov::op::TypeRelaxed``, that Python has no class for. An IR layer of the wrapper's own opset is read back as such a
node, though. So each kind of node (operation, attributes, types) is made once, as a template whose shapes are wholly
dynamic; its clones are rewired. To read takes 1 ms, however little there is to read: so the templates for a network's
operations are read together, and other attributes are set on a clone of what has been read. A template of which many
nodes are made has several, since most of a clone's time goes to the model around them.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ovlpt.graph.constants import once, precision_of, same_operation
from ovlpt.graph.replaced import detach_results, sources_of
from ovlpt.openvino_api import (
    MARKS_TYPES,
    RELAXES_EVERY_OPSET,
    RELEASE,
    Core,
    Model,
    Node,
    Output,
    relaxed_version,
)
from ovlpt.trace import OvlptError, reject

_PRIORITY = "primitives_priority"


def _priority(*families: str) -> str:
    """What the CPU plugin tries before all other kernels, by its own names."""
    names = ",".join(f"cpu:{family}{kind}" for family in families for kind in ("_dw", "_1x1", ""))
    return f'<attribute name="{_PRIORITY}" version="0" value="{names}"/>'


# int8 convolutions that are not of oneDNN's brgemm, such that are not of AMX, and such that are of brgemm or of AVX2
OLDER, WITHOUT_AMX, BRGEMM = "older", "without_amx", "brgemm"
_KERNELS = {
    "": "",
    OLDER: _priority("jit_avx512", "jit_avx2"),
    WITHOUT_AMX: _priority("brgconv_avx512", "jit_avx512", "brgconv_avx2", "jit_avx2"),
    BRGEMM: _priority("brgconv_avx512", "brgconv_avx2", "jit_avx2"),
}
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
_INPUTS = "f32", "i64"  # of templates, of an index the second
_FIRST_OPSET = {"MVN": "opset2"}
_RELAXATION = frozenset(("type_relax", "input_data_types", "output_data_types"))
_SIZE = 8  # nodes of a template that is cloned often
_OFTEN = 16  # clones: to make several of one takes as long as is gained with forty nodes
# Keeps a node's types where a plugin makes f16 of f32: what releases since 2026 read, and those before.
_KEPT_IN_F32 = (
    '<attribute name="DisablePrecisionConversion" version="0" value="dynamic:f16"/>'
    '<attribute name="precise" version="0"/>'
)
# Keeps any node's types: lies on what templates read, and is taken from there (`mark_of_kept_types`).
_KEPT_TYPES = ("DisablePrecisionConversion", "f32:f16") if MARKS_TYPES else ("precise", "")


@functools.cache
def own_core() -> Core:
    """The package's own: to make one and load its plugin takes 2 ms."""
    core = Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin, which brings the relaxed operations' opset
    return core


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_text(item) for item in value)
    return str(value)


def _escaped(text: str) -> str:
    """For between quotation marks: the module of the standard library that has this brings a parser of XML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


_Form = tuple[Any, ...]  # what `_layers` takes, but for the attributes
_CONVOLUTION = {
    "strides": [1, 1],
    "dilations": [1, 1],
    "pads_begin": [0, 0],
    "pads_end": [0, 0],
    "auto_pad": "explicit",
}
_NUMPY = {"auto_broadcast": "numpy"}


def _form(
    operation: str,
    opset: str,
    inputs: int,
    origin: str = "f32",
    siblings: int = 0,
    outputs: str = "f32",
    in_f32: bool = False,
    kernels: str = "",
) -> _Form:
    return operation, opset, inputs, origin, siblings, outputs, in_f32, kernels


_CLAMP = {"min": 0.0, "max": 1.0}
# What networks need often, by form: some attributes.
_USUAL: dict[_Form, Mapping[str, object]] = {
    _form("FakeQuantize", "opset1", 5, outputs="u8"): {"levels": 256, **_NUMPY},
    _form("FakeQuantize", "opset1", 5, outputs="i8"): {"levels": 256, **_NUMPY},
    _form("Convolution", "opset1", 2): _CONVOLUTION,
    _form("Convolution", "opset1", 2, kernels=OLDER): _CONVOLUTION,  # of an image
    _form("GroupConvolution", "opset1", 2): _CONVOLUTION,
    _form("MatMul", "opset1", 2): {"transpose_a": False, "transpose_b": False},
    _form("Add", "opset1", 2): _NUMPY,
    _form("Multiply", "opset1", 2): _NUMPY,
    _form("Subtract", "opset1", 2): _NUMPY,
    _form("ReduceMean", "opset1", 2): {"keep_dims": True},
    _form("ReduceSum", "opset1", 2): {"keep_dims": True},
    _form("AvgPool", "opset1", 1): {
        "kernel": [1, 1],
        "strides": [1, 1],
        "pads_begin": [0, 0],
        "pads_end": [0, 0],
        "exclude-pad": False,
        "auto_pad": "explicit",
        "rounding_type": "floor",
    },
    _form("ConvolutionBackpropData", "opset1", 2): {**_CONVOLUTION, "output_padding": [0, 0]},
    _form("PRelu", "opset1", 2): {},
    _form("Clamp", "opset1", 1): _CLAMP,
}
if RELAXES_EVERY_OPSET:
    _USUAL[_form("MVN", "opset6", 2)] = {"eps": 1e-5, "normalize_variance": True, "eps_mode": "inside_sqrt"}


class _Template:
    """Nodes of one kind, as many as are asked for; ``model``: with one of them."""

    def __init__(self, model: Model):
        self._model, self._spare, self._clones = model, list[Node](), 0

    def node(self) -> Node:
        if not self._spare:
            if self._clones == _OFTEN:
                self._model = _several(self._model)
            self._clones += 1
            results = self._model.clone().get_results()
            self._spare = [result.input_value(0).get_node() for result in results]
            detach_results(results)
        return self._spare.pop()


def _several(model: Model) -> Model:
    """A model of one node with as many as `_SIZE` of them in its place."""
    first, *others = (model.clone() for _ in range(_SIZE))
    inputs = _node_of(first).input_values()
    for other in others:
        _node_of(other).set_arguments(inputs)
    return _nameless([each.get_results()[0] for each in (first, *others)], first.get_parameters())


def _nameless(results: list[Node], parameters: list[Node]) -> Model:
    """A model whose values have no names, though OpenVINO gives them those of the Results."""
    model = Model(results, parameters, "t")
    for result in results:
        result.output(0).get_tensor().set_names(set())
    return model


_read: dict[_Form, Model] = {}  # one node of each form, whatever its attributes
# by form and attributes, as printed; or why there is none
_templates: dict[tuple[_Form, str], _Template | str] = {}
# before plugins are unloaded: a node that outlives them ends the process by a signal
atexit.register(_read.clear)
atexit.register(_templates.clear)


def _node_of(model: Model) -> Node:
    return model.get_results()[0].input_value(0).get_node()


def _own(attributes: Mapping[str, object]) -> dict[str, object]:
    """Those of the operation, without what the wrapper adds."""
    return {name: value for name, value in attributes.items() if name not in _RELAXATION and value is not None}


def _attribute(name: str, value: str) -> str:
    return f'<attribute name="{name}" version="0" value="{value}"/>'


def _input(number: int, kind: str) -> str:
    """The input, of a type, that all templates of a reading share: a clone is made of fewer nodes."""
    return (
        f'<layer id="{number}" name="{kind}" type="Parameter" version="opset1"><data shape="..." element_type="{kind}"/>'
        f'<rt_info>{_attribute(*_KEPT_TYPES)}</rt_info><output><port id="0" precision="{kind}"/></output></layer>'
    )


def _layers(form: _Form, attributes: Mapping[str, object], node: int) -> tuple[str, str]:
    """Layers and edges of a template as parts of an IR; ``node``: the number of its layer, before that of its Result."""
    operation, opset, inputs, origin, siblings, outputs, in_f32, kernels = form
    index = [port for port in _INDEX_INPUTS.get(operation, ()) if port < inputs]
    origins = ", ".join([origin] * (inputs - len(index) + siblings))
    data = "".join(f' {name}="{_escaped(_text(value))}"' for name, value in _own(attributes).items())
    ports = "".join(f'<port id="{port}"/>' for port in range(inputs))
    notes = f"<rt_info>{_KEPT_IN_F32 * in_f32}{_KERNELS[kernels]}</rt_info>"
    layers = (
        f'<layer id="{node}" name="relaxed{node}" type="{operation}" version="{relaxed_version(opset)}">'
        f'<data{data} type_relax="true" input_data_types="{origins}" output_data_types="{outputs}"/>{notes}'
        f'<input>{ports}</input><output><port id="{inputs}" precision="{outputs}"/></output></layer>'
        f'<layer id="{node + 1}" name="{node + 1}" type="Result" version="opset1"><input><port id="0"/></input></layer>'
    )
    edges = [
        f'<edge from-layer="{int(port in index and (operation, port) not in _REAL_INDEX_INPUTS)}" from-port="0" '
        f'to-layer="{node}" to-port="{port}"/>'
        for port in range(inputs)
    ]
    edges.append(f'<edge from-layer="{node}" from-port="{inputs}" to-layer="{node + 1}" to-port="0"/>')
    return layers, "".join(edges)


def _read_templates(forms: Mapping[_Form, Mapping[str, object]]) -> None:
    """Into `_read`, by one reading. Raises `OvlptError` where OpenVINO cannot make one of them."""
    layers, edges = "".join(_input(number, kind) for number, kind in enumerate(_INPUTS)), ""
    ends: dict[str, _Form] = {}
    for number, (form, attributes) in enumerate(forms.items(), 1):
        own = _layers(form, attributes, 2 * number)
        layers, edges = layers + own[0], edges + own[1]
        ends[str(2 * number + 1)] = form
    xml = f'<net name="t" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'
    try:
        model = own_core().read_model(xml.encode(), b"")
    except RuntimeError as error:
        operation, opset, *_ = list(forms)[-1]
        release = ".".join(map(str, RELEASE))
        raise OvlptError(
            f"OpenVINO {release} cannot make a type-relaxed {operation} of {opset}: {str(error).strip().splitlines()[-1]}"
        ) from error
    for result in model.get_results():
        sources = sources_of(result.input_value(0).get_node())
        inputs = {source.get_friendly_name(): source for source in sources}  # each once
        _read[ends[result.get_friendly_name()]] = _nameless([result], list(inputs.values()))


def read_templates_of(kinds: Container[str]) -> None:
    """Those of operations of these types that networks need often, and of zero points, which no model shows beforehand."""
    with suppress(OvlptError):  # who needs what cannot be made is told so
        _read_usual(lambda operation: operation in kinds or operation == "Subtract")


def _read_usual(is_asked: Callable[[str], bool] = lambda _: True) -> None:
    forms = {form: some for form, some in _USUAL.items() if form not in _read and is_asked(form[0])}
    if forms:
        _read_templates(forms)


def _with(model: Model, attributes: Mapping[str, object]) -> Model | None:
    """Of one node, with other attributes; None where they are not those that it has, or cannot all be set."""
    wanted, made = {name: _text(value) for name, value in _own(attributes).items()}, model.clone()
    node = _node_of(made)
    found = {name: _text(value) for name, value in _own(node.get_attributes()).items()}
    if found.keys() != wanted.keys():
        return None
    try:
        for name in wanted:
            if found[name] != wanted[name]:
                node.set_attribute(name, attributes[name])
    except (RuntimeError, TypeError):
        return None
    found = {name: _text(value) for name, value in _own(node.get_attributes()).items()}
    return made if found == wanted else None


def _made(form: _Form, attributes: Mapping[str, object]) -> _Template | str:
    try:
        if form in _USUAL and form not in _read:
            _read_usual()
        made = _with(_read[form], attributes) if form in _read else None
        if made is None:
            _read_templates({form: attributes})
        return _Template(made or _read[form])
    except OvlptError as error:
        return str(error)


def _template(form: _Form, attributes: Mapping[str, object]) -> _Template:
    """Made once. Raises `OvlptError` where OpenVINO cannot make it."""
    kind = form, repr(attributes)
    if kind not in _templates:
        _templates[kind] = _made(form, attributes)
    found = _templates[kind]
    if isinstance(found, str):
        raise OvlptError(found)
    return found


def relaxed(
    operation: str,
    inputs: Sequence[Output],
    output_precision: str,
    attributes: Mapping[str, object] | None = None,
    opset: str = "opset1",
    origin: str = "f32",
    siblings: int = 0,
    in_f32: bool = False,
    kernels: str = "",
) -> Node:
    """A type-relaxed node: it validates as if its inputs had type ``origin`` and reports ``output_precision``.

    ``siblings`` lengthens the list of input types, which validation ignores but which keeps OpenVINO's
    ``SharedOpOptimization`` from merging otherwise equal nodes. ``in_f32``: the node keeps its types where a plugin
    runs the model in f16 or bf16. ``kernels``: which ones the CPU plugin takes for it where they have a form of the layer:
    `OLDER`, oneDNN's before brgemm, none of which are of AMX, `WITHOUT_AMX` or `BRGEMM`.
    Raises `Rejected` for an operation of a later opset before 2025.2, which can relax only the first version of each, and
    `OvlptError` where the installed OpenVINO cannot make the node at all.
    """
    if not RELAXES_EVERY_OPSET and opset != _FIRST_OPSET.get(operation, "opset1"):
        # the version string of those releases has no opset in it, and another version would be read silently
        reject("release", f"OpenVINO {RELEASE[0]}.{RELEASE[1]} cannot make a type-relaxed {operation} of {opset}")
    form = operation, opset, len(inputs), origin, siblings, output_precision, in_f32, kernels
    node = _template(form, attributes or {}).node()
    node.set_arguments(list(inputs))
    node.set_friendly_name(node.get_name())
    node.validate_and_infer_types()
    if kernels in (WITHOUT_AMX, BRGEMM):
        node.get_rt_info()[kernels] = ""  # Python cannot read the priority
    return node


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


def mark_of_kept_types() -> tuple[str, Any]:
    """Key and value of the runtime information of a node whose types are to stay: Python has no name for the value. Releases
    before 2026.3 take text for the mark, too, and only text stays on what they make of the node.
    """
    key = f"{_KEPT_TYPES[0]}_0"
    if not MARKS_TYPES:
        return key, ""
    if not _read:
        _read_usual()
    return key, next(iter(_read.values())).get_parameters()[0].get_rt_info()[key]


def keeps_types(node: Node) -> bool:
    """Whether a node has either mark."""
    return f"{_KEPT_TYPES[0]}_0" in node.get_rt_info()


def mark_of_f32() -> tuple[str, Any]:
    """Key and value of the runtime information of a node that keeps its types where a plugin runs the model in f16 or
    bf16, as `relaxed` with ``in_f32`` sets it.
    """
    if not MARKS_TYPES:
        return mark_of_kept_types()
    form = _form("Clamp", "opset1", 1, in_f32=True)
    if form not in _read:
        _read_templates({form: _CLAMP})
    key = f"{_KEPT_TYPES[0]}_0"
    return key, _node_of(_read[form]).get_rt_info()[key]


def is_relaxed(node: Node) -> bool:
    return once((is_relaxed, node.get_instance_id()), lambda: "type_relax" in node.get_attributes())


def kernels_of(node: Node) -> str:
    """Which kernels the CPU plugin is asked for (`relaxed`)."""
    info = node.get_rt_info()
    if f"{_PRIORITY}_0" not in info:
        return ""
    return next((kernels for kernels in (WITHOUT_AMX, BRGEMM) if kernels in info), OLDER)


def has_older_kernels(node: Node) -> bool:
    return kernels_of(node) == OLDER


def can_be_relaxed(node: Node, output_precision: str = "f32", origin: str = "f32") -> bool:
    """Whether the installed OpenVINO can make the type-relaxed form: before 2025.2 only of the first opset's operations,
    and never of those that no plugin takes so, as ReduceL1.
    """
    opset = node.get_type_info().version_id
    if opset != "opset1" and not (RELAXES_EVERY_OPSET and opset.startswith("opset")):  # or it is the caller's own
        return False
    try:
        form = _form(node.get_type_name(), opset, node.get_input_size(), origin, outputs=output_precision)
        _template(form, node.get_attributes())
    except OvlptError:
        return False
    return True
