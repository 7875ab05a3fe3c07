"""Every cell against the real runtimes: recorded answers always, fresh ones where a runtime is installed."""

import contextlib

import numpy as np
import pytest

from ovlpt import reference
from ovlpt.reference import weighted
from ovlpt.reference.methods import ALIASES, RUNTIMES, resolve
from ovlpt.reference.requantization import RULES
from ovlpt.reference.table import DOCUMENT, FRAMEWORKS, OPERATORS, POWER, rounding
from ovlpt.trace import InputError
from tools.quantized_operators import formulas
from tools.quantized_operators.__main__ import compare, details, document_table, measure, recorded_formulas
from tools.quantized_operators.cases import Generator
from tools.quantized_operators.kernels import compute
from tools.quantized_operators.runtimes import available, family_of
from tools.quantized_operators.vectors import FOLDER, load

RECORDINGS = {family: list(load(family)) for family in dict.fromkeys(map(family_of, RUNTIMES))}
TORCH = [method for method in RUNTIMES if method.startswith("torch")]
# cells that no runtime was asked about
UNRECORDED = {
    *((operator, "openvino") for operator in ("Deconvolution", "Dequantize", "MaxPool", "ArgMax")),
    *((operator, method) for method in (*TORCH, "caffe2") for operator in ("Requantize", "ArgMax")),
}


@pytest.fixture(scope="module")
def counts():
    return measure(recorded_only=True)


@pytest.mark.parametrize("method", RUNTIMES)
def test_no_output_differs_from_the_recorded_ones(counts, method):
    wrong = {operator: count.cases for operator, count in counts[method].items() if count.wrong}
    assert not wrong


@pytest.mark.parametrize("method", RUNTIMES)
def test_every_cell_is_recorded(counts, method):
    cells = {operator for operator in OPERATORS if rounding(operator, method)}
    assert cells - set(counts[method]) == {operator for operator, name in UNRECORDED if name == method}


@pytest.mark.parametrize("method", sorted(available()))
def test_no_output_differs_from_the_runtime(method):
    """A seed of its own: what the recordings hold is not what is asked here."""
    cases = list(Generator(family_of(method), "small", seed=20))
    counts = compare(method, zip(cases, available()[method](cases), strict=True), "measured")
    # OpenVINO's inner product with a bias is off by one on some ties, see inner_product
    allowed = {("openvino", "InnerProduct"): 1e-2}
    wrong = {o: c.cases for o, c in counts.items() if c.wrong > c.total * allowed.get((method, o), 0)}
    assert not wrong


@pytest.mark.parametrize("method", ["tflite-reference", "tflite-optimized", "tflite-xnnpack", "onnx", "caffe2"])
def test_the_recordings_tell_the_rules_apart(method):
    """Exactly one rule explains each kind of weights; F and FF multipliers may coincide in so small a set."""
    for kind, wrong in recorded_formulas([method])[method].items():
        exact = {rule for rule in RULES if not wrong[rule]}
        assert exact, kind
        assert len({rule.replace("F", "D") for rule in exact} - {"DD2"}) <= 1, (kind, exact)


def test_the_d1_of_the_document_lives_in_tensorflow_2_5():
    wrong = recorded_formulas(["tflite-2.5"])["tflite-2.5"]["normal i8i8 per channel"]
    assert wrong["D2"] > 100
    single = weighted.weighted_rule("tflite-2.5", "normal", "i8", True, single=True)
    assert (weighted.weighted_rule("tflite-2.5", "normal", "i8", True), single) == ("D1", "D2u")


def test_the_document_has_its_cells():
    for operator, letters in DOCUMENT.items():
        for letter, method in zip(letters, FRAMEWORKS.values(), strict=True):
            names = POWER if operator == "Power" else (operator,)
            assert not letter or any(rounding(name, method) for name in names), (operator, method)


PRINTED = """
AveragePool     t o c
BiasAdd         - o -
Concat          ~ - -
Convolution     t o c
Deconvolution   - - c
EltwiseSum      t c c
InnerProduct    t t -
LeakyReLU       t - -
Power           t o c
ReLU            ~ ~ ~
ResizeBilinear  ~ - -
Sigmoid         ~ - -
Softmax         ~ - -
"""


def test_the_letters_are_those_of_the_document():
    read = {name: letters for name, *letters in map(str.split, PRINTED.strip().splitlines())}
    assert {name: [letter or "-" for letter in letters] for name, letters in DOCUMENT.items()} == read


@pytest.mark.parametrize("method, ties", [
    ("tflite-reference", [-3, -2, -1, 1, 2, 3]),  # half away from zero
    ("tflite", [-2, -2, 0, 0, 2, 2]),  # what TFLite executes today
    ("onnx", [-2, -2, 0, 0, 2, 2]),  # half to even
    ("caffe2", [-2, -2, 0, 0, 2, 2]),
])  # fmt: skip
def test_how_each_framework_rounds(method, ties):
    values = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5], np.float32)
    stored = reference.quantize(values, reference.Quantization(1.0, 100, "u8"), method)
    assert (stored.astype(int) - 100).tolist() == ties


@pytest.mark.parametrize("method", ["tflite-reference", "onnx", "caffe2"])
def test_relu_is_dequantize_operator_quantize(method):
    """The document's procedure, on every value of u8 with 16 pairs of scales and zero points: 0 of 4096 differ."""
    rng, x = np.random.default_rng(3), np.arange(256, dtype=np.uint8)
    for _ in range(16):
        scale, zero_point = rng.uniform(0.01, 0.1), int(rng.integers(0, 256))
        input = reference.Quantization(scale, zero_point, "u8")
        # Caffe2 keeps the quantization of its data
        output = input if method == "caffe2" else reference.Quantization(scale * rng.uniform(0.5, 2), 0, "u8")
        real = np.maximum(reference.dequantize(x, input, method), np.float32(0))
        expected = reference.quantize(real, output, method)
        assert (reference.relu(x, input, output, method=method) == expected).all()


def test_max_pool_and_arg_max_do_nothing_with_scales():
    quantization, x = (
        reference.Quantization(0.1, 7, "u8"),
        np.random.default_rng(0).integers(0, 256, (1, 3, 8, 8), np.uint8),
    )
    real = reference.dequantize(x, quantization)
    pooled = reference.max_pool(x, (2, 2), strides=(2, 2))
    assert pooled.dtype == x.dtype
    windows = real.reshape(1, 3, 4, 2, 4, 2).max((3, 5))
    np.testing.assert_array_equal(reference.dequantize(pooled, quantization), windows)
    np.testing.assert_array_equal(reference.arg_max(x), real.argmax(1))


def test_plain_tflite_is_what_its_default_executes():
    assert ALIASES == {"tflite": "tflite-xnnpack"}
    assert resolve("tflite") == "tflite-xnnpack"
    for recording in RECORDINGS["tflite"]:
        with contextlib.suppress(InputError):
            assert (compute(recording.case, "tflite") == compute(recording.case, "tflite-xnnpack")).all()


def test_refusals_are_shared(counts):
    """Where a runtime refuses a case, so does the kernel: no other outcome is counted as agreement."""
    refused = 0
    for recordings in RECORDINGS.values():
        for recording in recordings:
            for method, answer in recording.answers.items():
                if answer is None:
                    refused += 1
                    with pytest.raises(InputError):
                        compute(recording.case, method)
    assert refused > 10


def test_the_printed_table(counts):
    table = document_table(counts)
    assert [line.split()[0] for line in table.splitlines()[1:]] == list(DOCUMENT)
    assert table.count("no such operator") == 5
    assert "not measured" not in table
    assert "recorded, torch 1.4.0" in details(counts)


def test_the_recordings_are_small():
    assert sum(path.stat().st_size for path in FOLDER.glob("*.npz")) < 1_000_000


def test_extreme_zero_points_ties_and_both_shifts_are_in_the_recordings():
    zero_points, multipliers = set(), []
    for recording in RECORDINGS["tflite"]:
        q = recording.case.quantizations
        zero_points |= {(q["output"].precision, int(q["output"].zero_point))} if "output" in q else set()
        if "w" in q:
            multipliers.append((q["x"].scale * q["w"].scale / q["output"].scale).max())
    assert {("u8", 0), ("u8", 255), ("i8", -128), ("i8", 127)} <= zero_points
    assert min(multipliers) < 2**-15
    assert max(multipliers) > 1
    saturated = {
        value
        for recording in RECORDINGS["tflite"]
        if recording.case.operator == "Convolution" and recording.case.arrays["x"].dtype == np.int8
        for value in (recording.answers["tflite-xnnpack"].min(), recording.answers["tflite-xnnpack"].max())
    }
    assert {-128, 127} <= saturated


MATRIX = {  # SNPS-Caffe's document: scales × group
    ("normal", False): "D2", ("depthwise", False): "F2", ("pointwise", False): "F2",
    ("normal", True): "D1", ("depthwise", True): "D2", ("pointwise", True): "D1",
}  # fmt: skip


@pytest.mark.parametrize("precision", ["u8", "i8"])
@pytest.mark.parametrize(("kind", "per_channel"), MATRIX)
def test_the_documents_matrix(kind, per_channel, precision):
    """The method "snps" computes each cell by the document's formula, on cases that tell the formulas apart."""
    rule, told = RULES[MATRIX[kind, per_channel]], 0
    name = f"{kind} {precision}{precision} per {'channel' if per_channel else 'tensor'}"
    for recording in RECORDINGS["tflite"]:
        case, q = recording.case, recording.case.quantizations
        if not case.name.startswith(f"Convolution {name} 2^"):
            continue
        if per_channel and precision == "u8":
            with pytest.raises(InputError, match="SNPS-Caffe"):
                compute(case, "snps")
            return
        expected = rule(accumulated(case), q["x"].scale, aligned(q["w"].scale), q["output"])
        assert (compute(case, "snps") == expected).all()
        told += any((compute(case, method) != expected).any() for method in ("tflite-reference", "tflite-xnnpack"))
    assert told or (per_channel and precision == "u8")


def accumulated(case):
    a, q = case.arrays, case.quantizations
    x, w = q["x"].centered(a["x"]), q["w"].centered(a["w"]).astype(np.int32)
    return weighted.convolution_accumulator(x, w, **case.options) + a["bias"].astype(np.int64).reshape(-1, 1, 1)


def aligned(scale):
    return scale.reshape(-1, 1, 1) if scale.size > 1 else scale


def test_what_the_document_has_no_cell_for():
    for kind in ("grouped", "transposed", "inner"):
        with pytest.raises(InputError, match="SNPS-Caffe"):
            weighted.weighted_rule("snps", kind, "i8", False)


def test_the_matrix_against_the_runtime():
    """The document's table of formulas is what the tool prints, and its misses are in the documents."""
    printed = formulas.matrix(recorded_formulas(["tflite-2.5"])["tflite-2.5"])
    assert printed in (FOLDER.parents[2] / "docs" / "fake_quantize.md").read_text()
    assert "PerTensor × Depthwise | `F2` | u8 | 0 of" in printed
