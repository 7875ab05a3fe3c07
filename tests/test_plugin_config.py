"""Which configuration a device gets, and what is said where there is none."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from ovlpt.plugin_config import arm, cpu, gpu, this_cpu

import ovlpt
from ovlpt import data, plugin_config
from ovlpt.inspect.bench import bench
from ovlpt.inspect.check import check
from ovlpt.inspect.compare import compare
from ovlpt.inspect.verify import verify
from ovlpt.openvino_api import opset1
from ovlpt.trace import InputError
from tests.conftest import EXACT
from tests.networks import const, int8_weights, parameter, quantized


class Machine:
    """A core that only answers questions about its devices."""

    def __init__(self, **capabilities: str):
        self.capabilities = {name.replace("_", "."): words.split() for name, words in capabilities.items()}
        self.available_devices = list(self.capabilities)
        self.architecture = "intel64"

    def get_property(self, device: str, name: str) -> object:
        found = self.capabilities.get(device) or self.capabilities.get(device.removesuffix(".0")) or []
        if name == "OPTIMIZATION_CAPABILITIES":
            return found or self.capabilities[f"{device}.0"]
        return {"FULL_DEVICE_NAME": f"Some {device}", "DEVICE_ARCHITECTURE": self.architecture}[name]


XE, ARC = "FP32 FP16 INT8", "FP32 FP16 INT8 GPU_HW_MATMUL"


def test_gpu_by_its_hardware():
    machine = Machine(CPU="FP32 INT8", GPU_0=XE, GPU_1=ARC)
    assert plugin_config.for_device(machine, "GPU.0") == gpu.config(systolic=False)
    assert plugin_config.for_device(machine, "GPU") == gpu.config(systolic=False)
    assert plugin_config.for_device(machine, "GPU.1") == gpu.config(systolic=True)
    assert plugin_config.for_device(Machine(GPU=XE), "GPU.0") == gpu.config()
    assert gpu.config(systolic=True).params.reshape_ignore_per_tensor_quantization_check


def test_cpu_by_its_architecture():
    machine = Machine(CPU="FP32 INT8")
    assert plugin_config.for_device(machine, "CPU") == cpu.config(
        slow_mat_mul=this_cpu.multiplies_slowly(), recurrent_kernels=this_cpu.has_recurrent_kernels()
    )
    machine.architecture = "arm64"
    assert plugin_config.for_device(machine, "CPU").name.startswith("ARM CPU")


def test_the_plugin_is_asked_for_signed_activations():
    """The answer is that of the instruction set, where its flags are known to stand in a file."""
    flags = Path("/proc/cpuinfo")
    if flags.exists():
        has_them = bool({"amx_int8", "avx_vnni_int8"} & set(flags.read_text().split()))
        assert this_cpu.takes_signed_activations() <= has_them
    assert this_cpu.takes_signed_activations() == this_cpu.gives_signed_activations()
    assert cpu.SIGNED_ACTIVATIONS["AVX512_CORE_AMX"]
    assert not cpu.SIGNED_ACTIVATIONS["AVX512_CORE_VNNI"]


@pytest.mark.parametrize("signed", [False, True])
def test_group_convolution_by_its_rank(signed):
    restriction = next(
        each for each in cpu.config(signed).precision_restrictions if each.operation == "GroupConvolution"
    )
    allowed = {}
    for spatial in (2, 3):
        x = parameter([1, 4, *(8,) * spatial])
        ones, kernel = [1] * spatial, const(np.ones((4, 1, 1, *(1,) * spatial)))
        node = opset1.group_convolution(x, kernel, ones, [0] * spatial, [0] * spatial, ones)
        allowed[spatial + 2] = dict(restriction.of(node))[(0,)]
    assert allowed == {4: ("u8", "i8") if signed else ("u8",), 5: ("u8", "i8")}


@pytest.mark.parametrize(
    "device", ["AUTO:GPU.0,GPU.2", "MULTI:GPU.2,GPU.0", "HETERO:GPU.0", "BATCH:GPU.2(4)", "AUTO:-CPU,-GPU.1,-NPU"]
)
def test_a_virtual_device_over_equal_ones(device):
    machine = Machine(CPU="FP32 INT8", GPU_0=XE, GPU_1=ARC, GPU_2=XE, NPU="FP16 INT8")
    assert plugin_config.for_device(machine, device) == gpu.config()


@pytest.mark.parametrize(
    ("device", "sentence"),
    [
        ("AUTO:GPU.0,CPU", r'combines devices that need different models: GPU.0 \(GPU\), CPU \(CPU\); name one of them'),
        ("MULTI:GPU.0,GPU.1", r"GPU.0 \(GPU\), GPU.1 \(GPU with systolic hardware\)"),
        ("HETERO", 'names no device; write "HETERO:CPU", for instance'),
        ("NPU", 'device "NPU" takes the quantized model as it is'),
        ("AUTO:NPU", 'device "NPU" takes the quantized model as it is'),
        ("TPU", 'no device "TPU" on this machine; available: CPU, GPU.0, GPU.1, GPU.2, NPU, ACME'),
        ("GPU.3", 'no device "GPU.3" on this machine'),
        ("ACME", 'no configuration for device "ACME"; pass your own PluginConfig'),
        ("GPU.2", r'device "GPU.2" \(Some GPU.2\) has no int8, only FP32, BIN, FP16: .* force'),
    ],
)  # fmt: skip
def test_a_device_without_configuration_is_told_why(device, sentence):
    machine = Machine(
        CPU="FP32 INT8", GPU_0=XE, GPU_1=ARC, GPU_2="FP32 BIN FP16 EXPORT_IMPORT", NPU="INT8", ACME="INT8"
    )
    with pytest.raises(InputError, match=sentence):
        plugin_config.for_device(machine, device)


@pytest.mark.parametrize(
    ("device", "sentence"),
    [
        ("AUTO:GPU.0,CPU", 'device "AUTO:GPU.0,CPU" stands for others .*; give one of them: GPU.0, CPU'),
        ("HETERO", "names no device"),
        ("TPU", 'no device "TPU" on this machine; available: CPU, GPU.0, NPU'),
        ("NPU", 'device "NPU" cannot be told to leave its own LPT off, as this needs; give a CPU or a GPU'),
        ("CPU", None),
        ("GPU", None),
        ("GPU.0", None),
    ],
)
def test_what_measures_takes_no_virtual_device(device, sentence):
    machine = Machine(CPU="FP32 INT8", GPU_0=XE, NPU="INT8")
    if sentence is None:
        plugin_config.check_physical(machine, device)
    else:
        with pytest.raises(InputError, match=sentence):
            plugin_config.check_physical(machine, device)


@pytest.mark.parametrize("call", [bench, compare, partial(check, against="stock"), verify])
def test_every_measurement_says_so(core, call):
    with pytest.raises(InputError, match=r'"AUTO:CPU" stands for others .* give one of them: CPU'):
        call(data.digits(), device="AUTO:CPU", core=core)


def test_force():
    assert plugin_config.for_device(Machine(GPU="FP32"), "GPU", force=True) == gpu.config()


@pytest.mark.parametrize("device", ["AUTO:CPU", "MULTI:CPU", "HETERO:CPU", "BATCH:CPU(2)"])
def test_a_virtual_device_runs_the_model_in_int8(core, device):
    """These hand no property on; the plugin's own LPT stays off all the same."""
    compiled = ovlpt.compile_model(data.digits(), device, core=core)
    plain = ovlpt.compile_model(data.digits(), "CPU", core=core)
    mine, theirs = (ovlpt.execution_types(each).summary() for each in (compiled, plain))
    assert {"Convolution", "FullyConnected"} & set(mine)
    for kind in {"Convolution", "FullyConnected"} & set(mine):  # the product runs as a convolution where that is faster
        assert mine[kind] == theirs[kind]
        assert mine[kind][0] == mine[kind][1]


def test_a_virtual_device_over_two_plugins_with_settings_of_ones_own(core):
    with pytest.raises(InputError, match="combines plugins that need different models"):
        ovlpt.transform(data.digits(), "HETERO:GPU,CPU", config=cpu.config(), core=core)


def test_another_plugin_is_settings_alone(core):
    """Only products, and only of u8: every convolution stays in float."""
    own = ovlpt.PluginConfig(
        "ACME",
        precision_restrictions=(
            ovlpt.PrecisionsRestriction.create("MatMul", {0: ["u8"], 1: ["i8"]}),
            ovlpt.PrecisionsRestriction.create("Convolution"),
            ovlpt.PrecisionsRestriction.create("GroupConvolution"),
        ),
        disabled=("MultiplyToGroupConvolutionTransformation",),
    )
    layers = ovlpt.execution_types(ovlpt.compile_model(data.digits(), "CPU", EXACT, own, core=core))
    assert layers.summary()["Convolution"][1] == 0
    assert layers.summary()["FullyConnected"] == (1, 1)


def test_gpu_keeps_multiplies_that_it_fuses():
    """A Multiply alone after its data becomes part of that layer, one beside others a depthwise convolution."""
    x = parameter([1, 8, 4, 4])
    scale = const(np.linspace(1, 2, 8).reshape(1, 8, 1, 1))
    alone = opset1.multiply(opset1.relu(x), scale)
    shared = opset1.relu(x)
    beside, _other = opset1.multiply(shared, scale), opset1.sigmoid(shared)
    callback = gpu.config().callbacks["MultiplyToGroupConvolutionTransformation"]
    assert callback(alone)
    assert not callback(beside)
    assert callback(opset1.multiply(shared, const(2.0)))


@pytest.mark.parametrize(("inputs", "outputs", "taken"), [(16, 16, True), (6, 16, False), (16, 8, False)])
def test_gpu_takes_deconvolutions_by_their_channels(inputs, outputs, taken):
    x = parameter([1, inputs, 4, 4])
    weights = int8_weights([inputs, outputs, 2, 2])
    node = opset1.convolution_backprop_data(quantized(x, 0, 2.55), weights, strides=[2, 2])
    assert gpu.config().callbacks["ConvolutionBackpropDataTransformation"](node) != taken


@pytest.mark.parametrize(
    ("groups", "inputs", "outputs", "spatial", "zero_point", "taken"),
    [
        (2, 16, 16, 2, False, True),
        (2, 16, 16, 3, False, True),
        (2, 16, 16, 1, False, False),
        (2, 16, 16, 2, True, False),
        (4, 4, 4, 2, False, False),
        (2, 6, 16, 2, False, False),
        (8, 1, 1, 2, False, True),
        (8, 1, 2, 2, False, False),
    ],
)
def test_gpu_takes_grouped_deconvolutions_by_the_channels_of_a_group(
    groups, inputs, outputs, spatial, zero_point, taken
):
    x = parameter([1, groups * inputs, *(4,) * spatial])
    weights = int8_weights([groups, inputs, outputs, *(2,) * spatial])
    data = opset1.convert(opset1.convert(x, "u8"), "f32")
    data = opset1.multiply(opset1.subtract(data, const(100.0)) if zero_point else data, const(0.01))
    node = opset1.group_convolution_backprop_data(data, weights, [2] * spatial)
    assert gpu.config().callbacks["GroupConvolutionBackpropDataTransformation"](node) != taken


def test_arm_leaves_small_convolutions_and_products_of_activations():
    x = parameter([1, 16, 4, 4])
    ones, zeros = [1, 1], [0, 0]
    callbacks = arm.config().callbacks
    small = opset1.convolution(x, int8_weights([16, 16, 3, 3]), ones, zeros, zeros, ones)
    strided = opset1.convolution(x, int8_weights([16, 16, 3, 3]), [2, 2], zeros, zeros, ones)
    pointwise = opset1.convolution(x, int8_weights([16, 16, 1, 1]), ones, zeros, zeros, ones)
    assert [callbacks["ConvolutionTransformation"](node) for node in (small, strided, pointwise)] == [
        True,
        False,
        False,
    ]
    a, b = parameter([2, 8]), parameter([8, 4])
    assert callbacks["MatMulTransformation"](opset1.matmul(a, b, False, False))
    for kind in ("ConvolutionBackpropData", "GroupConvolutionBackpropData", "GroupConvolution"):
        assert f"{kind}Transformation" in arm.config().disabled
    assert not callbacks["MatMulTransformation"](opset1.matmul(a, int8_weights([8, 4]), False, False))


def test_for_a_cpu_no_other_plugin_is_loaded(core):
    """As to list all devices does."""

    class Unlisted:
        get_property = core.get_property

        @property
        def available_devices(self):
            raise AssertionError("devices are listed")

    assert plugin_config.for_device(Unlisted(), "CPU", force=True) == plugin_config.for_device(core, "CPU", force=True)
    with pytest.raises(AssertionError, match="listed"):
        plugin_config.for_device(Unlisted(), "GPU")
