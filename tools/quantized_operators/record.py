"""Records what the real runtimes answer to the small cases: ``python -m tools.quantized_operators.record``.

Needs ``ai-edge-litert``, ``onnx``, ``onnxruntime`` and ``openvino`` in this Python, and in the variables
OVLPT_TENSORFLOW_2_5_PYTHON, OVLPT_CAFFE2_PYTHON and OVLPT_TORCH_PYTHON a Python 3.8 with
``tensorflow-cpu==2.5.0``, a Python 3.8 with ``torch==1.4.0 numpy==1.23.5 protobuf==3.20.3 future six``, and
any Python with ``torch==2.13.0``. A family is written only if all its runtimes are there.
"""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import PackageNotFoundError, version

from ovlpt.reference.methods import RUNTIMES
from tools.quantized_operators.cases import Generator
from tools.quantized_operators.runtimes import OTHER_PYTHONS, available, family_of
from tools.quantized_operators.vectors import Recording, save


def main() -> None:
    runtimes = available()
    for family in dict.fromkeys(map(family_of, RUNTIMES)):
        methods = [method for method in RUNTIMES if family_of(method) == family]
        if missing := [method for method in methods if method not in runtimes]:
            print(f"{family}: not recorded, no runtime for {', '.join(missing)}")
            continue
        cases = list(Generator(family, "small"))
        answers = {method: runtimes[method](cases) for method in methods}
        recordings = [
            Recording(case, {m: None if isinstance(answers[m][i], str) else answers[m][i] for m in methods})
            for i, case in enumerate(cases)
        ]
        path = save(family, recordings, {method: runtime_version(method) for method in methods})
        print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


def runtime_version(method: str) -> str:
    """Package and version of a method's runtime."""
    packages = {
        "tflite": "ai-edge-litert",
        "onnx": "onnxruntime",
        "openvino": "openvino",
        "torch": "torch",
        "caffe2": "torch",
    }
    package = "tensorflow-cpu" if method == "tflite-2.5" else packages[family_of(method)]
    python = os.environ.get(OTHER_PYTHONS.get(method, OTHER_PYTHONS.get(family_of(method), "")))
    if python:
        script = f"from importlib.metadata import version; print(version({package!r}))"
        result = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
        return f"{package} {result.stdout.strip()}"
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


if __name__ == "__main__":
    main()
