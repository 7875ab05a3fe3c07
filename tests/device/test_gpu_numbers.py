"""The GPU plugin's own kernels, executed on a virtual GPU: with ovlpt no number is worse than with the plugin's own LPT.

Networks: `tests.gpu_networks`; ``python -m tools.gpu_numbers`` prints the table, and takes whole networks too.
"""

from __future__ import annotations

import ctypes
import functools
import json
from collections.abc import Callable

import numpy as np
import pytest
from openvino import save_model

import ovlpt
from ovlpt import cli, data
from ovlpt.device import LayerExecution, subprocess_call, virtual_gpu
from ovlpt.device.properties import EXACT, UNCACHED
from ovlpt.inspect.compare import compare
from ovlpt.inspect.float_model import simulate
from ovlpt.inspect.verify import verify
from ovlpt.openvino_api import RELEASE, Core, Model, opset1
from ovlpt.trace import InputError
from tests.gpu_networks import NETWORKS, heads
from tests.graphs import NodeFactory
from tests.networks import const, convolution, int8_weights, model, one_convolution, parameter, quantized
from tools.gpu_numbers import Row, compared, inputs_for, int8_layers, is_int8_layer, outputs, ratio, table, truth

try:
    virtual_gpu.check_known("xelp", execute=True)
    virtual_gpu.environment(execute=True)
    MISSING = ""
except InputError as error:
    MISSING = str(error)
executes = pytest.mark.skipif(bool(MISSING), reason=MISSING)
since_2025 = pytest.mark.skipif(RELEASE < (2025, 0), reason="numbers were measured with the GPU plugin of 2026")

NAMES = tuple(NETWORKS)
ROUNDING_OF_8_BITS = 30.0  # dB: below, more is wrong than a few ties that were rounded to the other side
# Networks of one process, and the floats that they run in, f32 for a third of them: the time goes into building kernels.
SHARES = [("f32", NAMES[::3]), *(("f16", NAMES[start::3]) for start in (1, 2))]


def of_plain_convolutions() -> list[float]:
    """In dB between CPU and GPU: of floats in f32, and in f16. The work items of a depthwise layer of 5x5 share its weights,
    also those that a branch leaves out.
    """
    virtual_gpu.load("xelp", execute=True)
    core, x = Core(), parameter([1, 16, 12, 12])
    weights = const(np.random.default_rng(0).standard_normal((8, 16, 3, 3)))
    layers = [opset1.convolution(x, weights, [1, 1], [1, 1], [1, 1], [1, 1])]
    groups = const(np.random.default_rng(0).standard_normal((16, 1, 1, 5, 5)))
    layers.append(opset1.group_convolution(x, groups, [1, 1], [2, 2], [2, 2], [1, 1]))
    net, data = model(layers, x), [np.random.default_rng(1).standard_normal((1, 16, 12, 12)).astype(np.float32)]
    expected = outputs(core.compile_model(net, "CPU", EXACT), data)
    hints = ({**EXACT, "INFERENCE_PRECISION_HINT": hint} for hint in ("f32", "f16"))
    return [ratio(expected, outputs(core.compile_model(net, "GPU", hint), data)) for hint in hints]


@executes
def test_kernels_run():
    """As exactly as f32 and f16 are."""
    f32, f16 = subprocess_call.call(of_plain_convolutions, environment=virtual_gpu.environment(True))[0]
    assert f32 > 120
    assert 40 < f16 < 90


@executes
@since_2025
@pytest.mark.parametrize(("precision", "names"), SHARES)
def test_numbers_and_int8_layers(precision, names):
    """Not more than 1 dB below stock, nor as wrong as stock is; not fewer layers in int8, no number infinite or missing."""
    rows = subprocess_call.call(compared, names, "xelp", (precision,), environment=virtual_gpu.environment(True))[0]
    assert len(rows) == len(names)
    assert all(np.isfinite(row.ovlpt) for row in rows)
    misses = [row for row in rows if row.is_miss or row.ovlpt < ROUNDING_OF_8_BITS]
    assert not misses, table(misses)


def outputs_with_a_scale_of_one() -> list[tuple[str, float]]:
    """Of what a layer in int8 reads as well, and of its maximum: their types, and how far they are from numpy."""
    virtual_gpu.load("xelp", execute=True)
    core, found = Core(), []
    values = np.random.default_rng(0).uniform(-9, 300, (1, 8, 6, 6)).astype(np.float32)
    integers = np.clip(np.rint(values), 0, 255)
    for expected in (integers, integers.max((2, 3))):
        x = parameter([1, 8, 6, 6])
        data = quantized(x, 0, 255)
        read = data if expected is integers else opset1.reduce_max(data, const([2, 3], "i64"), False)
        net = model([read, convolution(data, 8)], x)
        (result, _) = ovlpt.compile_model(net, "GPU", EXACT, core=core)([values]).values()
        found.append((str(result.dtype), float(np.abs(result - expected).max())))
    return found


@executes
def test_outputs_with_a_scale_of_one_are_real_numbers():
    """The scale would be dropped, with its type."""
    found = subprocess_call.call(outputs_with_a_scale_of_one, environment=virtual_gpu.environment(True))[0]
    assert found == [("float32", 0.0)] * 2


def states_of_open_steps() -> Model:
    """All states of a recurrent layer and its last one, in one interval; batch and steps are open."""
    x, units, generator = parameter([-1, -1, 8]), 16, np.random.default_rng(0)
    sizes = opset1.split(opset1.shape_of(x), const(0, "i64"), 3)
    zeros = opset1.broadcast(const(0.0), opset1.concat([sizes.output(0), const([1, units], "i64")], 0))
    steps = opset1.broadcast(opset1.squeeze(sizes.output(1), const([0], "i64")), sizes.output(0))
    weights = [const(generator.uniform(-0.5, 0.5, (1, 4 * units, size))) for size in (8, units)]
    functions = ["sigmoid", "tanh", "tanh"]
    attributes = {"direction": "forward", "hidden_size": units, "activations": functions, "clip": 0.0}
    inputs = [x, zeros, zeros, steps, *weights, const(generator.uniform(-0.2, 0.2, (1, 4 * units)))]
    layer = NodeFactory("opset5").create("LSTMSequence", [each.output(0) for each in inputs], attributes)
    states, last = (quantized(layer.output(number), -0.5, 0.5) for number in range(2))
    return model(
        [opset1.relu(opset1.squeeze(states, const([1], "i64"))), opset1.transpose(last, const([1, 0, 2], "i64"))], x
    )


def states_at_one_batch(precision: str) -> float:
    """In dB, of the worse of all states and the last one."""
    virtual_gpu.load("xelp", execute=True)
    core, net = Core(), states_of_open_steps()
    core.get_property("CPU", "FULL_DEVICE_NAME")
    inputs = [np.random.default_rng(1).standard_normal((1, 12, 8)).astype(np.float32)]
    compiled = ovlpt.compile_model(net, "GPU", {**UNCACHED, "INFERENCE_PRECISION_HINT": precision}, core=core)
    return ratio(outputs(simulate(net, core), inputs), outputs(compiled, inputs))


@executes
@since_2025
@pytest.mark.parametrize("precision", ["f16", "f32"])
def test_equal_quantizations_of_two_outputs_of_a_layer(precision):
    """The plugin took them for one: all states were those of the last step."""
    assert subprocess_call.call(states_at_one_batch, precision, environment=virtual_gpu.environment(True))[0] > 35


def product_of_two_quantizations() -> Model:
    """All axes but two have size 1."""
    x, y = parameter([1, 1, 8, 12]), parameter([1, 1, 12, 16], name="y")
    mixed = opset1.matmul(quantized(opset1.softmax(x, 3), 0, 1), quantized(opset1.tanh(y), -1.28, 1.27), False, False)
    return model(opset1.softmax(mixed, 3), [x, y])


def of_ovlpt(build: Callable[[], Model], precision: str) -> tuple[float, int]:
    """In dB against the simulation, and layers in int8, of a network of which the plugin's own LPT throws."""
    virtual_gpu.load("xelp", execute=True)
    core, net = Core(), build()
    core.get_property("CPU", "FULL_DEVICE_NAME")
    compiled = ovlpt.compile_model(net, "GPU", {**UNCACHED, "INFERENCE_PRECISION_HINT": precision}, core=core)
    inputs, fixed = inputs_for(net), net.clone()
    # what follows a layer of dynamic sizes by rows is read wrongly by a CPU, too
    fixed.reshape({port: value.shape for port, value in zip(fixed.inputs, inputs, strict=True)})
    return ratio(outputs(simulate(fixed, core), inputs), outputs(compiled, inputs)), int8_layers(compiled)


@executes
@since_2025
@pytest.mark.parametrize("precision", ["f16", "f32"])
def test_a_product_whose_second_factor_looks_like_weights(precision):
    environment = virtual_gpu.environment(True)
    found, low = subprocess_call.call(of_ovlpt, product_of_two_quantizations, precision, environment=environment)[0]
    assert found > 40
    assert low == 1


def of_one_matrix(data: tuple[int, ...], axes: int) -> Model:
    """Its weights have ``axes`` axes, all but two of size 1."""
    x, shape = parameter(list(data)), [1] * (axes - 2) + [data[-1], 16]
    return model(opset1.relu(opset1.matmul(quantized(x, -1.28, 1.27), int8_weights(shape), False, False)), x)


@executes
@since_2025
@pytest.mark.parametrize("precision", ["f16", "f32"])
@pytest.mark.parametrize(("data", "axes"), [((2, 5, 32), 3), ((5, 32), 3), ((2, 3, 5, 32), 4)], ids=str)
def test_weights_of_one_matrix_with_more_axes(precision, data, axes):
    """All sums were integers of 8 bits, or it threw; of four axes stock is wrong, too."""
    environment, build = virtual_gpu.environment(True), functools.partial(of_one_matrix, data, axes)
    found, low = subprocess_call.call(of_ovlpt, build, precision, environment=environment)[0]
    assert found > 40
    assert low == 1


def clipped() -> Model:
    """Data with a zero point, which no layer fuses."""
    x = parameter([1, 8, 4, 4])
    return model(opset1.clamp(quantized(x, -0.3, 1.18), 0, 1), x)


@executes
@since_2025
@pytest.mark.parametrize("precision", ["f16", "f32"])
def test_a_clamp_of_quantized_data(precision):
    """In f16 the plugin made the scale part of the FakeQuantize: all numbers were integers, less the zero point."""
    environment = virtual_gpu.environment(True)
    assert subprocess_call.call(of_ovlpt, clipped, precision, environment=environment)[0][0] > 40


@executes
@since_2025
@pytest.mark.parametrize("precision", ["f16", "f32"])
@pytest.mark.parametrize(("quantizes", "layer_is_int8"), [(True, True), (True, False), (False, True), (False, False)])
def test_heads_of_open_batches(quantizes, layer_is_int8, precision):
    """Off by 10 dB or more with the plugin's own LPT, or it throws."""
    environment = virtual_gpu.environment(True)
    build = functools.partial(heads, quantizes, layer_is_int8)
    found, low = subprocess_call.call(of_ovlpt, build, precision, environment=environment)[0]
    assert found > 40
    assert low >= layer_is_int8


@executes
@since_2025
def test_what_threw_or_was_less_exact_in_f32():
    names = ("row_of_known_size", "subtracted_twice", "vector", "vector_and_bias")
    rows = subprocess_call.call(compared, names, "xelp", ("f32",), environment=virtual_gpu.environment(True))[0]
    assert [row.name for row in rows] == list(names)
    assert not any(row.is_miss for row in rows), table(rows)


@executes
@since_2025
@pytest.mark.parametrize("name", ["four_axes", "padded_after", "row_of_groups"])
def test_numbers_where_stock_is_wrong(name):
    """And of no use to compare with."""
    rows = subprocess_call.call(compared, (name,), "xelp", ("f16", "f32"), environment=virtual_gpu.environment(True))[0]
    assert len(rows) == 2
    assert all(row.stock < 20 for row in rows)
    assert all(row.ovlpt > 40 for row in rows)


def test_what_is_a_miss():
    def row(stock: float, mine: float, stock_int8: int = 2, mine_int8: int = 2) -> Row:
        return Row("net", "f16", stock, mine, stock_int8, mine_int8, 0.0)

    assert not row(50, 49.5).is_miss
    assert not row(140, 139.5).is_miss
    assert not row(50, 60, 1, 2).is_miss
    assert all(
        miss.is_miss for miss in (row(50, 48.5), row(140, 138.5), row(50, -np.inf), row(50, np.nan), row(50, 50, 2, 1))
    )


@pytest.mark.parametrize("name", ["grouped_deconvolution", "recurrent", "vector", "windows"])
def test_the_truth_is_not_that_of_f32(name):
    """The simulation in f32 is as near as f32 is, and a scale that is wrong by 1e-5 is seen."""
    core, net = Core(), NETWORKS[name]()
    inputs = inputs_for(net)
    exact = truth(net, inputs, core)
    assert all(value.dtype == np.float64 for value in exact)
    near = outputs(simulate(net, core), inputs)
    assert 120 < ratio(exact, near) < 200
    wrong = Row(
        name, "f32", ratio(exact, near), ratio(exact, [value * np.float32(1 + 1e-5) for value in near]), 1, 1, 0.0
    )
    assert wrong.is_miss


def test_what_counts_as_an_int8_layer():
    def layer(name: str, kind: str = "Convolution", precision: str = "i8") -> LayerExecution:
        return LayerExecution(name, kind, "EXECUTED", f"kernel__{precision}", precision, precision, 0.0, 0.0, (name,))

    assert is_int8_layer(layer("Convolution1"))
    assert not is_int8_layer(layer("Convolution1", precision="f16"))
    assert not is_int8_layer(layer("Concat1", "Concat"))
    assert not is_int8_layer(layer("FakeQuantize1/DequantizationMultiply/GroupConvolution"))  # a scale
    assert not is_int8_layer(layer("Multiply_51145/GroupConvolution"))  # the same with the plugin's own LPT


def test_devices_that_cannot_be_executed():
    with pytest.raises(InputError, match='"dg2" runs machine code of its matrix engines'):
        virtual_gpu.check_known("dg2", execute=True)
    with pytest.raises(InputError, match='"gen9" has no int8'):
        virtual_gpu.check_known("gen9", execute=True)


def test_a_release_whose_kernels_cannot_be_executed(monkeypatch):
    monkeypatch.setattr(virtual_gpu, "RELEASE", (2025, 4))
    with pytest.raises(InputError, match=r"OpenVINO 2025\.4 cannot execute a virtual GPU: .* leave execute out"):
        virtual_gpu.check_known("xelp", execute=True)
    virtual_gpu.check_known("xelp")


def test_without_the_runtime(monkeypatch):
    monkeypatch.setattr(virtual_gpu.metadata, "files", lambda name: None)
    with pytest.raises(InputError, match=r'"intel-opencl-rt" is not installed; .* pip install "ovlpt\[gpu\]"'):
        virtual_gpu.environment(execute=True)


@executes
def test_built_programs_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    environment = {**virtual_gpu.environment(True), "XDG_CACHE_HOME": str(tmp_path)}
    first = subprocess_call.call(of_plain_convolutions, environment=environment)[0]
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("kernels-*/*")}
    assert kept
    next(iter(kept)).write_bytes(b"cut off")
    assert subprocess_call.call(of_plain_convolutions, environment=environment)[0] == first
    assert all(path.stat().st_size > 100 for path in kept)


def test_built_programs_are_those_of_a_version(tmp_path, monkeypatch):
    """A fresh environment has the runtime at another path, and as a new file."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "ovlpt").mkdir()
    runtimes = [tmp_path / name / "libintelocl.so" for name in ("one", "another", "larger")]
    for runtime in runtimes:
        runtime.parent.mkdir()
        runtime.write_bytes(b"library" if runtime != runtimes[2] else b"another library")
    one, another, larger = (virtual_gpu._kernels(tmp_path / "built" / "lib.so", {"numpy": each}) for each in runtimes)
    assert one == another != larger
    assert virtual_gpu._kernels(tmp_path / "changed" / "lib.so", {"numpy": runtimes[0]}) != one
    monkeypatch.setattr(virtual_gpu.metadata, "version", lambda name: "another")
    assert virtual_gpu._kernels(tmp_path / "built" / "lib.so", {"numpy": runtimes[0]}) != one


@executes
def test_check_and_verify_compare_numbers():
    found = ovlpt.check(one_convolution(), "GPU", against="stock", virtual="xelp", execute=True, precision="f16")
    assert found.ok
    assert found.numbers.worst.ovlpt > 100
    assert any("times mean nothing" in note for note in found.notes)
    records = verify(one_convolution(), device="GPU", virtual="xelp", execute=True)
    assert [record.status for record in records] == ["equal", "equal"]


@executes
def test_compare_has_no_latencies():
    """They would be those of this CPU."""
    found = compare(one_convolution(), device="GPU", virtual="xelp", execute=True)
    assert found.latency == {}
    assert found.layers


def sizes_of_memory(size: int) -> list[int]:
    """In bytes: what is there where a buffer of ``size`` is asked for, with content and without, and memory of each kind."""
    virtual_gpu.load("xelp", execute=True)
    library, address, none = ctypes.CDLL(str(virtual_gpu.library(True))), ctypes.c_void_p, None
    for name in ("clCreateContext", "clCreateBuffer", "clGetExtensionFunctionAddressForPlatform"):
        getattr(library, name).restype = address
    for_gpus, copies_content, memory_size, shared_size = 4, 32, 0x1102, 0x419C
    platform, device = address(), address()
    library.clGetPlatformIDs(1, ctypes.byref(platform), none)
    library.clGetDeviceIDs(platform, ctypes.c_uint64(for_gpus), 1, ctypes.byref(device), none)
    context = address(library.clCreateContext(none, 1, ctypes.byref(device), none, none, none))

    def extension(name: str, *types):
        return ctypes.CFUNCTYPE(*types)(library.clGetExtensionFunctionAddressForPlatform(platform, name.encode()))

    def told(ask, of: object, question: int) -> int:
        answer = ctypes.c_size_t()
        assert ask(*of, question, ctypes.c_size_t(ctypes.sizeof(answer)), ctypes.byref(answer), none) == 0
        return answer.value

    found = []
    for flags, content in ((0, none), (copies_content, bytes(size))):
        buffer = library.clCreateBuffer(context, ctypes.c_uint64(flags), ctypes.c_size_t(size), content, none)
        found.append(told(library.clGetMemObjectInfo, (address(buffer),), memory_size))
    ask = extension(
        "clGetMemAllocInfoINTEL", ctypes.c_int, *[address] * 2, ctypes.c_uint, ctypes.c_size_t, *[address] * 2
    )
    for name, devices in (("Host", []), ("Device", [device]), ("Shared", [device])):
        types = [address] * (3 + len(devices)) + [ctypes.c_size_t, ctypes.c_uint, address]
        allocate = extension(f"cl{name}MemAllocINTEL", *types)
        found.append(told(ask, (context, allocate(context, *devices, none, size, 0, none)), shared_size))
    return found


@executes
def test_memory_goes_on_after_its_end():
    """Kernels read there: `verify` of the digits ended by a signal."""
    found = subprocess_call.call(sizes_of_memory, 8192, environment=virtual_gpu.environment(True))[0]
    assert len(found) == 5
    assert all(size >= 8192 + 65536 for size in found)


@executes
def test_strided_layers_of_the_digits():
    """Of 4 x 4 outputs: half of the work items of a layer's kernel have none."""
    records = verify(data.digits(), device="GPU", virtual="xelp", execute=True, layers=5)
    assert [record.status for record in records] == ["equal"] * 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"device": "GPU", "virtual": "xelp"}, "computes numbers only with execute=True"),
        ({"device": "CPU", "virtual": "xelp", "execute": True}, 'a virtual GPU needs the device "GPU", not "CPU"'),
        ({"device": "GPU", "virtual": "dg2", "execute": True}, "machine code of its matrix engines"),
    ],
)
def test_what_cannot_be_computed(arguments, sentence):
    for function in (verify, compare):
        with pytest.raises(InputError, match=sentence):
            function(one_convolution(), **arguments)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-d", "GPU", "--execute"], "name one with --virtual"),
        (["-d", "GPU", "--virtual", "xelp"], "xelp needs --execute"),
        (["--virtual", "xelp", "--execute"], 'a virtual GPU needs the device "GPU", not "CPU"'),
        (["-d", "GPU", "--virtual", "bmg", "--execute"], "machine code of its matrix engines"),
    ],
)
def test_what_commands_refuse(capsys, arguments, sentence):
    for command in ("verify", "compare", "run"):
        assert cli.main([command, str(data.digits()), *arguments]) == 2
        assert sentence in capsys.readouterr().err


@executes
def test_run_says_nothing_of_times(tmp_path, capsys):
    """On a GPU without matrix engines: `test_report_of_a_virtual_gpu` has one with."""
    path, target = str(tmp_path / "net.xml"), tmp_path / "run.json"
    save_model(one_convolution(), path, compress_to_fp16=False)
    command = ["run", path, "-d", "GPU", "--virtual", "mtl", "--execute", "--json", str(target)]
    assert cli.main(command) == 0
    printed = capsys.readouterr().out
    assert "times mean nothing" in printed
    assert " ms" not in printed
    assert "time in int8" not in printed
    content = json.loads(target.read_text())["result"]
    assert content["latency_ms"] == content["latency_ratio"] == {}
    assert content["int8_time_share"] is None
    assert content["summary"]["Convolution"] == {"total": 1, "int8": 1, "float": 0}
    assert content["largest_relative_difference"] < 0.01
    assert cli.main([*command, "-pc"]) == 2
    assert "leave out -pc" in capsys.readouterr().err


def test_explain_of_a_virtual_gpu(capsys):
    assert cli.main(["explain", str(data.digits()), "-d", "GPU", "--virtual", "xelp"]) == 0
    assert "layers with weights run in int8" in capsys.readouterr().out


def test_a_precision_that_a_gpu_has_not():
    with pytest.raises(InputError, match='no precision "bf16" of floats to check'):
        ovlpt.check(one_convolution(), "GPU", virtual="xelp", precision="bf16")
    with pytest.raises(InputError, match="only the kernels of a virtual GPU can be executed this way"):
        ovlpt.check(one_convolution(), "GPU", execute=True)
