"""A saved model is an ordinary model: whoever loads it has the same int8 layers and the same numbers."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import openvino
import pytest
from openvino._offline_transformations import apply_moc_transformations
from openvino.preprocess import PrePostProcessor

import ovlpt
from ovlpt import data
from ovlpt.device.properties import F32
from ovlpt.graph.quantization_details import QuantizationDetails
from ovlpt.openvino_api import ConstantFolding, Type, opset1
from tests.conftest import EXACT, run_pass
from tests.device.test_lowering import recurrent
from tests.networks import const, convolution, depthwise, encoder, int8_weights, model, parameter, quantized


def by_channel():
    """Intervals by channel, and one on another grid after a product that stays in float."""
    x = parameter([2, 16, 8, 8])
    high = np.linspace(1, 2.55, 16).reshape(1, 16, 1, 1)
    ends = [const(np.zeros((1, 16, 1, 1))), const(high), const(np.zeros((1, 16, 1, 1))), const(high)]
    data_ = quantized(depthwise(opset1.fake_quantize(x, *ends, 256)), -1.0, 1.0)
    other = quantized(opset1.sigmoid(quantized(convolution(data_, 8), -1.28, 1.27)), 0, 1, 16)
    return model([other, quantized(convolution(data_, 16, seed=1), 0, 2.55, 255)], x)


def of_rank_0():
    """A FakeQuantize of a single number beside a product."""
    x, y = parameter([4, 16]), parameter([], name="y")
    product = opset1.matmul(quantized(x, -1.28, 1.27), int8_weights([16, 8], axis=1), False, False)
    return model(opset1.multiply(product, quantized(y, -2, 2)), [x, y])


WITH_WEIGHTS = ("Convolution", "FullyConnected", "RNNSeq")
NETWORKS = {
    "digits": lambda: data.digits(),
    "encoder": encoder,
    "by channel": by_channel,
    "rank 0": of_rank_0,
    "recurrent": lambda: recurrent()[0],
}


def as_read(read):
    return read


def processed(read, precision=None):
    """With a PrePostProcessor in front, which folds constants."""
    processor = PrePostProcessor(read)
    for index, port in enumerate(read.inputs):
        given = precision if precision is not None and len(port.partial_shape) > 1 else port.element_type
        processor.input(index).tensor().set_element_type(given)
    return processor.build()


def images(read):
    """As a tool that reads pictures sets inputs."""
    return processed(read, Type.u8)


def folded(read):
    return run_pass(read, ConstantFolding())


def optimized(read):
    """As a model is when another tool has converted it."""
    apply_moc_transformations(read, False)
    return read


def reshaped(read):
    read.reshape({port: port.partial_shape for port in read.inputs})
    return read


def saved_again(core, read, folder):
    """As `openvino.save_model` writes it by default, which makes f16 of constants elsewhere."""
    openvino.save_model(read, folder / "again.xml")
    return core.read_model(folder / "again.xml")


@pytest.fixture(scope="module", params=NETWORKS, ids=lambda name: name.replace(" ", "_"))
def saved(request, core, tmp_path_factory):
    """A file, inputs, how `ovlpt.compile_model` runs the network, and the outputs of the file."""
    net = NETWORKS[request.param]()
    path = tmp_path_factory.mktemp("saved") / "saved.xml"
    ovlpt.save_model(ovlpt.transform(net, core=core), path)
    here = ovlpt.compile_model(net, "CPU", EXACT, core=core)
    generator = np.random.default_rng(0)
    inputs = [generator.integers(0, 4, list(port.shape)).astype(np.float32) for port in here.inputs]
    numbers = list(ovlpt.compile_model(path, "CPU", EXACT, core=core)(inputs).values())
    return request.param, path, inputs, here, [np.array(each) for each in numbers]


def int8_layers(compiled) -> int:
    """Of those with weights; what lies between them depends on the types of floats."""
    return sum(layer.is_int8 for layer in ovlpt.execution_types(compiled).executed if layer.layer_type in WITH_WEIGHTS)


def assert_equal(compiled, saved, numbers: bool = True) -> None:
    _, _, inputs, here, expected = saved
    found = [np.array(each) for each in compiled(inputs).values()]
    assert int8_layers(compiled) == int8_layers(here) > 0
    if numbers:
        for one, other in zip(found, expected, strict=True):
            assert np.abs(one - other).max() <= 1e-5 * np.abs(other).max()


@pytest.mark.parametrize("device", ["CPU", "AUTO:CPU", "MULTI:CPU", "HETERO:CPU", "BATCH:CPU(1)"])
@pytest.mark.parametrize("change", [as_read, processed, folded, optimized, reshaped], ids=lambda each: each.__name__)
def test_devices(saved, core, device, change):
    """None of them sets the plugin's own LPT off."""
    compiled = core.compile_model(change(core.read_model(saved[1])), device, EXACT)
    assert_equal(compiled, saved)


@pytest.mark.parametrize("change", [as_read, processed, optimized, reshaped, folded], ids=lambda each: each.__name__)
def test_without_the_own_lpt_of_the_plugin(saved, core, change):
    if saved[0] == "recurrent":
        pytest.skip("the plugin forms quantized recurrent layers only while its own LPT is on")
    compiled = core.compile_model(change(core.read_model(saved[1])), "CPU", {**EXACT, "LP_TRANSFORMS_MODE": "NO"})
    assert_equal(compiled, saved)


def test_saved_again(saved, core, tmp_path):
    for change in (as_read, processed, reshaped, folded):
        read = saved_again(core, change(core.read_model(saved[1])), tmp_path)
        assert_equal(core.compile_model(read, "CPU", EXACT), saved)


def test_images(saved, core):
    """Of integers, as the inputs are here."""
    path, inputs, here, expected = saved[1:]
    compiled = core.compile_model(images(core.read_model(path)), "CPU", EXACT)
    given = [each.astype(port.element_type.to_dtype()) for each, port in zip(inputs, compiled.inputs, strict=True)]
    found = [np.array(each) for each in compiled(given).values()]
    assert int8_layers(compiled) == int8_layers(here)
    for one, other in zip(found, expected, strict=True):
        assert np.abs(one - other).max() <= 1e-5 * np.abs(other).max()


@pytest.mark.parametrize(
    "hint", [{}, {"INFERENCE_PRECISION_HINT": "bf16"}, {**F32, "PERFORMANCE_HINT": "THROUGHPUT"}], ids=str
)
@pytest.mark.parametrize("change", [as_read, processed], ids=lambda each: each.__name__)
def test_hints(saved, core, hint, change):
    """What stays in float may be in bf16, and its numbers with it."""
    compiled = core.compile_model(change(core.read_model(saved[1])), "CPU", hint)
    assert_equal(compiled, saved, numbers=F32.items() <= hint.items())


def test_benchmark_app(saved, tmp_path):
    """It puts a PrePostProcessor in front and sets no property of the plugin's."""
    code = "from openvino.tools.benchmark.main import main; main()"
    options = ["-m", saved[1], "-d", "CPU", "-niter", "2", "-infer_precision", "f32", "-exec_graph_path", "graph.xml"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, options)], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    layers = ElementTree.parse(tmp_path / "graph.xml").findall("layers/layer")
    kernels = [each.find("data").get("primitiveType") for each in layers if each.get("type") in WITH_WEIGHTS]
    assert sum("_i8" in kernel.lower() for kernel in kernels) == int8_layers(saved[3])


PROGRAM = """
#include <stdio.h>
#include <stddef.h>
typedef struct ov_core core_t; typedef struct ov_compiled_model model_t;
typedef struct ov_infer_request request_t; typedef struct ov_tensor tensor_t;
int ov_core_create(core_t**);
int ov_core_compile_model_from_file(const core_t*, const char*, const char*, size_t, model_t**, ...);
int ov_compiled_model_create_infer_request(const model_t*, request_t**);
int ov_infer_request_get_input_tensor_by_index(const request_t*, size_t, tensor_t**);
int ov_infer_request_get_output_tensor_by_index(const request_t*, size_t, tensor_t**);
int ov_infer_request_infer(request_t*);
int ov_tensor_data(const tensor_t*, void**);
int ov_tensor_get_byte_size(const tensor_t*, size_t*);
#define CALL(call) do { int status = call; if (status) { fprintf(stderr, "%s: %d", #call, status); return 1; } } while (0)
int main(int count, char** names) {
    core_t* core; model_t* model; request_t* request; tensor_t* tensor; void* data; size_t size;
    CALL(ov_core_create(&core));
    CALL(ov_core_compile_model_from_file(core, names[1], "CPU", 2, &model, "INFERENCE_PRECISION_HINT", "f32"));
    CALL(ov_compiled_model_create_infer_request(model, &request));
    for (int at = 3; at < count; at++) {
        CALL(ov_infer_request_get_input_tensor_by_index(request, at - 3, &tensor));
        CALL(ov_tensor_data(tensor, &data));
        CALL(ov_tensor_get_byte_size(tensor, &size));
        FILE* file = fopen(names[at], "rb");
        if (!file || fread(data, 1, size, file) != size) return 2;
    }
    CALL(ov_infer_request_infer(request));
    CALL(ov_infer_request_get_output_tensor_by_index(request, 0, &tensor));
    CALL(ov_tensor_data(tensor, &data));
    CALL(ov_tensor_get_byte_size(tensor, &size));
    FILE* file = fopen(names[2], "wb");
    return fwrite(data, 1, size, file) != size || fclose(file);
}
"""


def test_c_program(saved, tmp_path):
    """The C library of the wheel, with default properties but for the floats' type."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    _, path, inputs, _, expected = saved
    libraries = Path(openvino.__file__).parent / "libs"
    (tmp_path / "load.c").write_text(PROGRAM)
    library = next(libraries.glob("libopenvino_c.so*"))
    places = [f"-Wl,-rpath,{libraries}", f"-Wl,-rpath-link,{libraries}"]
    program = [compiler, "load.c", str(library), *places, "-o", "load"]
    subprocess.run(program, check=True, cwd=tmp_path, capture_output=True)
    for index, each in enumerate(inputs):
        each.tofile(tmp_path / f"{index}.bin")
    given = [f"{index}.bin" for index in range(len(inputs))]
    subprocess.run(["./load", str(path), "out.bin", *given], check=True, cwd=tmp_path, capture_output=True)
    found = np.fromfile(tmp_path / "out.bin", np.float32).reshape(expected[0].shape)
    assert np.abs(found - expected[0]).max() <= 1e-5 * np.abs(expected[0]).max()


FRESH = """
import sys, openvino
core = openvino.Core()
{line}
core.read_model(sys.argv[1])
"""


@pytest.mark.parametrize("line", ["core.available_devices", 'core.get_versions("CPU")', ""])
def test_read_in_a_fresh_process(core, tmp_path, line):
    """The CPU plugin brings the operations."""
    ovlpt.save_model(ovlpt.transform(data.digits(), core=core), tmp_path / "saved.xml")
    command = [sys.executable, "-c", FRESH.format(line=line), str(tmp_path / "saved.xml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode == 0) == bool(line)
    assert line or "unsupported opset: type_relaxed_opset" in done.stderr


def test_no_loader_can_see_the_ends(saved, core):
    """Where no FakeQuantize has four Constants, or Converts of such, the plugin's own LPT stays off."""
    if saved[0] == "recurrent":
        pytest.skip("here it has to be on")
    for change in (as_read, processed, folded, optimized, reshaped):
        read = change(core.read_model(saved[1]))
        found = [node for node in read.get_ops() if node.get_type_name() == "FakeQuantize"]
        assert found
        for node in found:
            kinds = {value.get_node().get_type_name() for value in node.input_values()[1:]}
            assert not kinds <= {"Constant", "Convert"}
            assert QuantizationDetails.of(node) is not None  # ovlpt sees through
