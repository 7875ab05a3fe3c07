"""The real runtimes: which are here, and what they answer to a case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from ovlpt.trace import InputError
from tools.quantized_operators.cases import Case
from tools.quantized_operators.kernels import compute

HERE = Path(__file__).parent
Answers = list[np.ndarray | str]
"""Per case: the result, or the runtime's refusal."""

# runtimes that need a Python of their own; each variable names its interpreter
OTHER_PYTHONS = {
    "tflite-2.5": "OVLPT_TENSORFLOW_2_5_PYTHON",
    "caffe2": "OVLPT_CAFFE2_PYTHON",
    "torch": "OVLPT_TORCH_PYTHON",
}
RESOLVERS = {
    "tflite-reference": "BUILTIN_REF",
    "tflite-optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "tflite-xnnpack": "AUTO",
    "tflite-2.5": "BUILTIN",
}


def available() -> dict[str, Callable[[list[Case]], Answers]]:
    """method → its runtime, of those installed here or named by an environment variable."""
    runtimes: dict[str, Callable[[list[Case]], Answers]] = {}
    if find_spec("ai_edge_litert"):
        for method, resolver in RESOLVERS.items():
            python = sys.executable if method != "tflite-2.5" else os.environ.get(OTHER_PYTHONS[method])
            if python:
                runtimes[method] = lambda cases, p=python, r=resolver: _run_tflite(cases, p, r)
    if find_spec("onnxruntime") and find_spec("onnx"):
        runtimes["onnx"] = _run_onnx
    if python := os.environ.get(OTHER_PYTHONS["caffe2"]):
        runtimes["caffe2"] = lambda cases: _run_files(cases, [python, HERE / "run_caffe2.py"])
    if torch := os.environ.get(OTHER_PYTHONS["torch"]):
        for engine in ("qnnpack", "fbgemm", "x86", "onednn"):
            runtimes[f"torch-{engine}"] = lambda cases, e=engine: _run_files(cases, [torch, HERE / "run_torch.py", e])
    if find_spec("openvino"):
        runtimes["openvino"] = _run_openvino
    return runtimes


def family_of(method: str) -> str:
    """The family of cases that a method's runtime runs."""
    return method.partition("-")[0]


def _run_tflite(cases: list[Case], python: str, resolver: str) -> Answers:
    from tools.quantized_operators.tflite_models import model_of

    with tempfile.TemporaryDirectory() as directory:
        stems = [os.path.join(directory, f"{index:05}") for index in range(len(cases))]
        shapes = [_shape(case) for case in cases]
        for case, stem, shape in zip(cases, stems, shapes, strict=True):
            model, inputs = model_of(case, shape)
            Path(f"{stem}.tflite").write_bytes(model)
            np.savez(f"{stem}.npz", **{f"i{index}": array for index, array in enumerate(inputs)})
        subprocess.run([python, HERE / "run_tflite.py", directory, resolver], check=True, stderr=subprocess.DEVNULL)
        answers = _collect(stems)
    return [np.moveaxis(y, -1, 1) if isinstance(y, np.ndarray) and y.ndim == 4 else y for y in answers]


def _run_onnx(cases: list[Case]) -> Answers:
    from tools.quantized_operators import onnx_models

    return [_attempt(onnx_models.run, case) for case in cases]


def _run_openvino(cases: list[Case]) -> Answers:
    from tools.quantized_operators import openvino_models

    return [_attempt(openvino_models.run, case) for case in cases]


def _run_files(cases: list[Case], command: Iterable) -> Answers:
    python, script, *rest = command
    with tempfile.TemporaryDirectory() as directory:
        stems = [os.path.join(directory, f"{index:05}") for index in range(len(cases))]
        for case, stem in zip(cases, stems, strict=True):
            arrays = dict(case.arrays)
            for name, quantization in case.quantizations.items():
                arrays[f"{name}.scale"], arrays[f"{name}.zero_point"] = (
                    quantization.scale,
                    quantization.zero_point,
                )
            text = json.dumps({"operator": case.operator, "options": case.options})
            np.savez(f"{stem}.npz", case=np.array(text), **arrays)
        subprocess.run([python, script, directory, *rest], check=True, stderr=subprocess.DEVNULL)
        return _collect(stems)


def _collect(stems: list[str]) -> Answers:
    return [
        np.load(f"{stem}.out.npy") if os.path.exists(f"{stem}.out.npy") else Path(f"{stem}.error").read_text()
        for stem in stems
    ]


def _attempt(run: Callable[[Case], np.ndarray], case: Case) -> np.ndarray | str:
    try:
        return run(case)
    except Exception as error:
        return str(error)


def _shape(case: Case) -> tuple[int, ...]:
    for method in ("tflite-xnnpack", "tflite-reference"):
        try:
            return compute(case, method).shape
        except InputError as error:
            refusal = error
    raise refusal
