"""The model as it stands before and after the native pass, taken from a traced compile of the stock plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from ovlpt.openvino_api import Model
from ovlpt.trace import InputError
from tools.parity.driver import core

# The last dump of one of these lies just before the native pass and holds no type-relaxed node yet; the second in the GPU
# plugin of 2024.6.
_BEFORE, _AFTER = ("LoraSubgraphFusion", "ConvertReduceToReshape"), "LowPrecision"
_COMPILE = """
import sys, openvino
path, gpu = sys.argv[1:]
device, properties = "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
if gpu:
    from ovlpt.device import virtual_gpu
    virtual_gpu.load(gpu)
    device, properties = "GPU", {**properties, **virtual_gpu.properties(gpu)}
openvino.Core().compile_model(path, device, properties)
"""


def trace(path: Path, folder: Path, gpu: str = "") -> tuple[Path, Path]:
    """Compile the model at ``path`` in a process of its own and return the IR files before and after the native pass.

    ``gpu``: on this virtual GPU, instead of the CPU. The files lie in ``folder``. Raises `InputError` where the compilation fails or the pass does not run, which means
    that
    the model is not quantized.
    """
    environment = os.environ | {"OV_ENABLE_SERIALIZE_TRACING": ",".join((*_BEFORE, _AFTER))}
    command = [sys.executable, "-c", _COMPILE, str(Path(path).resolve()), gpu]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if result.returncode:
        raise InputError(f"the stock plugin cannot compile {path}: {result.stderr.strip().splitlines()[-1]}")
    dumps = sorted(folder.glob("*.xml"), key=_number)
    before = next((found for name in _BEFORE if (found := [dump for dump in dumps if name in dump.name])), None)
    after = [dump for dump in dumps if _AFTER in dump.name]
    if not before or not after:
        raise InputError(f"the native pass does not run on {path}; is it a quantized model?")
    return before[-1], after[-1]


def _number(dump: Path) -> int:
    """Where in the order of passes a file of the name Model_NUMBER_PASS.xml was written."""
    return int(re.search(r"_(\d+)_", dump.name)[1])


def before_and_after(path: Path, gpu: str = "") -> tuple[Model, Model]:
    """As `trace`, with the models read."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(
            core().read_model(file.read_bytes(), file.with_suffix(".bin").read_bytes())
            for file in trace(path, Path(folder), gpu)
        )
