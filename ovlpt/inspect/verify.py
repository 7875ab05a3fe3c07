"""Does the compiled model compute what its integers say? Each int8 layer, and the whole, against the interpreter.

Every layer is extracted as a separate model and compiled: outputs added to the whole network would prevent the
plugin's fusions there, and at outputs after many layers a single tie that was rounded the other way has spread to
everything. The integers that the layer reads are the interpreter's, so no layer inherits the differences of
those above it. Sizes that are dynamic in the model are dynamic in the layer: the plugin compiles those differently.

What a plugin does only where layers meet cannot be seen in a single layer: two layers' zero points are merged, per-channel
scales are folded into the interval of another layer's data, or a residual Add is fused into the layer before it, where the
CPU plugin drops the rounding of the FakeQuantize in between. So the whole model is compiled as well, and its outputs are
compared with the interpreter's by the rule of `ovlpt.inspect.numbers`, since ties cannot be told from errors there.

Both forms are compiled: as `compile_model` makes it, and as `transform` saves it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from ovlpt import plugin_config
from ovlpt.config import PluginConfig, other_names
from ovlpt.device import PluginLowering, saturates, transform, virtual_gpu
from ovlpt.device.compile import lpt_properties
from ovlpt.device.loading import compile_given, read_quantized
from ovlpt.device.properties import EXACT, LATENCY, simulation
from ovlpt.device.states import refuse_variables
from ovlpt.graph.constants import constant_above, precision_of
from ovlpt.inspect.inputs import open_sizes, output_names, random_inputs
from ovlpt.inspect.numbers.distance import Distance, verdict
from ovlpt.interpreter import Interpreter, Layer, layers_of
from ovlpt.interpreter.evaluation import evaluate
from ovlpt.interpreter.layer import FUNCTIONS, integer_source
from ovlpt.interpreter.post_operations import clamp_ends, slope_of
from ovlpt.openvino_api import Core, Manager, Model, Node, opset1
from ovlpt.own_transformations import knows_own_operations
from ovlpt.precisions import INT8
from ovlpt.trace import InputError

_logger = logging.getLogger("ovlpt")

EQUAL, TIES, NEAR, WRONG = "equal", "off by one at ties", "as near as stock", "wrong"

_EPSILON = float(np.finfo(np.float32).eps)
_LIPSCHITZ = 1.5  # the steepest of the functions that may follow a layer
_SUMS = 1e-5  # of the largest output: what another order of sums does in f32
_FUNCTION_ERROR = 2.0**-16  # of a plugin's approximation of a function, relative to the largest number in the chain


@dataclass(frozen=True, slots=True)
class Record:
    """One int8 layer, or an output of the model (of the type "Result"): how many of its ``total`` results differ."""

    name: str
    type: str
    status: str
    mismatches: int
    total: int

    def to_json(self) -> dict[str, object]:
        return asdict(self)


@other_names(plugin="config", device_name="device")
@knows_own_operations
def verify(
    model: Model | str | Path,
    inputs: Sequence[np.ndarray] | None = None,
    method: str = "openvino",
    device: str = "CPU",
    core: Core | None = None,
    layers: int | None = None,
    against: Model | str | Path | None = None,
    config: PluginConfig | None = None,
    virtual: str | None = None,
    execute: bool = False,
) -> list[Record]:
    """Compare the int8 layers of ``model`` in the interpreter with the same layers compiled for ``device``.

    ``inputs``: one array per input; by default random, at several sizes where sizes are dynamic. ``method``: see
    `ovlpt.interpreter.execute`. ``layers``: only the first N. ``against``: compile the layers of this model instead
    (the same network with other constants). ``config``: settings other than the device's own.

    A layer is "equal" when every level that its FakeQuantize stores is the same; "off by one at ties" when
    levels differ by one where the exact result is so close to the middle between both that float32 arithmetic,
    in any order, cannot tell; else "wrong". A layer without a FakeQuantize at its end is equal within
    that same bound. The compiled side runs with ``INFERENCE_PRECISION_HINT`` f32 and the plugin's own LPT
    off: integers are compared, which another type of floats would round (`check` compares outputs in a CPU's default). On a device that sums pairs of products in 16 bits (`saturates`) the interpreter does so too.

    Without ``layers`` and ``against``, and with the method "openvino", a record for each real output of the whole model
    follows: "wrong" where it is more than 3 dB farther from the interpreter's than that of the plugin with its own LPT,
    and below 40 dB; else "equal" or "as near as stock".

    Raises `InputError` as `transform` and `execute` do, where the model has no int8 layer, and where
    ``against`` lacks one. ``virtual``, ``execute``: on the kernels of a GPU that this machine need not have
    (`ovlpt.device.virtual_gpu`), in a process of their own.
    """
    if virtual is not None:
        virtual_gpu.check_computes(virtual, device, execute, config)
        settings = {"layers": layers, "against": against}
        return virtual_gpu.call(virtual, True, verify, model, inputs, method, device, **settings)
    core = core or Core()
    plugin_config.check_physical(core, device)
    source = read_quantized(model, core)
    refuse_variables(source, "the interpreter keeps no state")
    work = transform(model, device, config, lowered=False, core=core)
    other = work if against is None else transform(against, device, config, lowered=False, core=core)
    samples = [inputs] if inputs is not None else [random_inputs(source, 0, *sizes) for sizes in open_sizes(source)]
    whole = None
    if layers is None and against is None and method == "openvino":
        whole = _Whole(source, config, device, core)
    records: dict[tuple[str, str], Record] = {}
    for number, arrays in enumerate(samples):
        try:
            interpreter = Interpreter(work, arrays, method, saturates(core, device))
        except InputError:
            if number == 0:
                raise
            continue  # a network need not run at every size
        if not interpreter.layers:
            raise InputError(
                f'"{source.get_friendly_name()}" has no int8 layer: "ovlpt explain" says why and what would help'
            )
        for count, (layer, integers) in enumerate(islice(interpreter.run(), layers), 1):
            _logger.info("verifies layer %d of %d, %s", count, len(interpreter.layers), layer.name)
            read = {port: interpreter.value(integer_source(layer.node.input_value(port))) for port in (0, 1)}
            mine = interpreter.value(layer.end.output(0))
            for compiled in _compiled(other, layer.name, read, device, core):
                mismatches, status = compare(layer, integers, mine, compiled.reshape(mine.shape), method)
                _add(records, Record(layer.name, layer.type, status, mismatches, mine.size))
        if whole is not None:
            for record in whole.records(arrays, interpreter.outputs()):
                _add(records, record)
    return sorted(records.values(), key=lambda record: record.type == "Result")


def _add(records: dict[tuple[str, str], Record], new: Record) -> None:
    """Join what one layer gave in another form, or for another size."""
    old = records.get(key := (new.type, new.name))
    if old is not None:
        status = max(old.status, new.status, key=(EQUAL, TIES, NEAR, WRONG).index)
        new = Record(new.name, new.type, status, old.mismatches + new.mismatches, old.total + new.total)
    records[key] = new


class _Whole:
    """The whole model in both forms, and with the plugin's own LPT."""

    def __init__(self, source: Model, config: PluginConfig | None, device: str, core: Core):
        self._names = output_names(source)
        properties = {**EXACT, **LATENCY}
        forms = (transform(source, device, config, core=core, serializable=each) for each in (False, True))
        self._stock = compile_given(source, device, properties, core)
        self._compiled = [core.compile_model(form, device, properties | lpt_properties(form, device)) for form in forms]

    def records(self, arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> Iterator[Record]:
        """One for each form and real output, against the interpreter's."""
        stock = [np.array(value) for value in self._stock(arrays).values()]
        for compiled in self._compiled:
            found = [np.array(value) for value in compiled(arrays).values()]
            for name, r, mine, other in zip(self._names, expected, found, stock, strict=True):
                if np.issubdtype(r.dtype, np.floating):
                    near, others = Distance.of(r, mine), Distance.of(r, other)
                    fails = verdict(near.sqnr, others.sqnr, bool(near.broken) and not others.broken).fails
                    same = r.shape == mine.shape and ~_outside(mine, r, _SUMS * np.abs(r).max(initial=0))
                    mismatches = int(r.size - np.sum(same))
                    yield Record(name, "Result", WRONG if fails else NEAR if mismatches else EQUAL, mismatches, r.size)


def _compiled(model: Model, name: str, arrays: dict[int, np.ndarray], device: str, core: Core) -> Iterator[np.ndarray]:
    """What ``device`` makes of the layer of this name, cut out of a clone, for these integers: in memory, and saved."""
    for serializable in (False, True):
        clone = model.clone()
        layer = next((layer for layer in layers_of(clone) if layer.name == name), None)
        if layer is None:
            raise InputError(f'"{model.get_friendly_name()}" has no int8 layer "{name}"; give the same network')
        parameters, values = [], []
        for port, array in arrays.items():
            integers = integer_source(layer.node.input_value(port))
            if integers.get_node().get_type_name() == "Constant":
                continue
            parameter = opset1.parameter(integers.get_partial_shape(), integers.get_element_type())
            _path_to(layer.node, port).replace_source_output(parameter.output(0))
            parameters.append(parameter)
            values.append(array)
        cut = Model([opset1.result(layer.end)], parameters, name)
        cut.validate_nodes_and_infer_types()
        manager = Manager()
        manager.register_pass(PluginLowering(device, lpt_on=False, serializable=serializable))
        manager.run_passes(cut)
        yield np.array(core.compile_model(cut, device, simulation(device))(values)[0])


def _path_to(node: Node, port: int):
    """The input that reads the integers: of the node, or of the Subtract or Convert between."""
    while precision_of(node.input_value(port)) not in INT8:
        node, port = node.input_value(port).get_node(), 0
    return node.input(port)


def compare(
    layer: Layer, integers: np.ndarray, mine: np.ndarray, compiled: np.ndarray, method: str = "openvino"
) -> tuple[int, str]:
    """Number of results that differ, and the status. ``integers``: the layer's exact accumulator.

    Both sides are held to the exact result, so that an error which the interpreter shares with a plugin's
    fusion rules is found as well.
    """
    exact, error = exact_result(layer, integers, method)
    if layer.quantizer is None:
        wrong = _outside(mine, exact, error) | _outside(compiled, exact, error)
        return int(wrong.sum()), WRONG if wrong.any() else EQUAL
    (first, first_wrong), (second, second_wrong) = (
        (level, ~on_grid | _outside(level, exact, 0.5 + error))
        for level, on_grid in (_levels(layer.quantizer, values) for values in (mine, compiled))
    )
    differs, wrong = first != second, first_wrong | second_wrong
    status = WRONG if wrong.any() else TIES if differs.any() else EQUAL
    return int((differs | wrong).sum()), status


def _outside(values: np.ndarray, exact: np.ndarray, error: np.ndarray) -> np.ndarray:
    return ~(np.abs(values.astype(np.float64) - exact) <= error)  # also where a value is not a number


def _levels(quantizer: Node, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The number of each value's level, and where a value lies on one."""
    low, high = (constant_above(quantizer.input_value(port)).astype(np.float64) for port in (3, 4))
    step = (high - low) / (quantizer.get_attributes()["levels"] - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        position = np.where(step == 0, 0, (values - low) / step)
    levels = np.rint(position)
    return levels, np.abs(position - levels) <= 1e-3


def exact_result(layer: Layer, integers: np.ndarray, method: str = "openvino") -> tuple[np.ndarray, np.ndarray]:
    """The layer's result in float64 and a bound on what float32 can miss it by.

    With a FakeQuantize at its end the result is the level before it is rounded, a fraction. The bound is a
    few units in the last place of the largest number that occurs on the way, counted where it counts: at the
    end of the chain; and a shift below 1e-5 of a FakeQuantize's range, which the CPU plugin drops. Methods
    other than "openvino" round bias and accumulator to integers, which counts twice the accumulator's unit.
    """
    x = integers.astype(np.float64)
    largest, unit, roundings, more = np.abs(x), np.float64(1), 4, 0.0
    for node in layer.chain:
        kind = node.get_type_name()
        constants = [constant_above(value).astype(np.float64) for value in node.input_values()[1:]]
        roundings += kind != "Convert"
        if kind in ("Add", "Subtract"):
            x = x + constants[0] if kind == "Add" else x - constants[0]
            largest = largest + np.abs(constants[0])
        elif kind == "Multiply":
            scale = np.abs(constants[0])
            x, largest, unit, more = x * constants[0], largest * scale, unit * scale, more * scale
        elif kind == "Relu":
            x = np.maximum(x, 0)
        elif kind == "PRelu":
            slope = slope_of(node, x.ndim).astype(np.float64)
            x, largest = np.where(x > 0, x, x * slope), largest * np.maximum(1, np.abs(slope))
        elif kind == "Clamp":
            low, high = clamp_ends(node)
            x = np.clip(x, np.float64(low), np.float64(high))
        elif kind == "Convert":
            continue
        elif kind in FUNCTIONS:
            x = evaluate(node, [array.astype(np.float32) for array in (x, *constants)])[0].astype(np.float64)
            largest = np.maximum(_LIPSCHITZ * largest, np.abs(x))  # sigmoid(0) is 1/2
            more = _LIPSCHITZ * more + _FUNCTION_ERROR * largest
        else:
            low, high, out_low, out_high = constants
            steps = node.get_attributes()["levels"] - 1
            slope = np.where(out_low == out_high, 0, steps / (high - low))
            shift = np.abs(low * slope)
            x = (np.clip(x, np.minimum(low, high), np.maximum(low, high)) - low) * slope
            largest, unit = (largest + np.abs(low)) * np.abs(slope), unit * np.abs(slope)
            more = more * np.abs(slope) + np.where(shift < 1e-5 * steps, shift, 0)
            roundings += 3
    if method != "openvino":
        more = more + 2 * unit
    return x, roundings * _EPSILON * largest + more
