"""The model as it stands before and after the native pass, taken from a traced compile of the stock plugin."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ovlpt.openvino_api import Model
from ovlpt.trace import InputError
from tools.parity.driver import core

# The last dump of LoraSubgraphFusion lies just before the native pass and holds no type-relaxed node yet.
_BEFORE, _AFTER = "LoraSubgraphFusion", "LowPrecision"
_COMPILE = """
import sys, openvino
openvino.Core().compile_model(sys.argv[1], "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
"""


def trace(path: Path, folder: Path) -> tuple[Path, Path]:
    """Compile the model at ``path`` in a process of its own and return the IR files before and after the native pass.

    The files lie in ``folder``. Raises `InputError` where the compilation fails or the pass does not run, which means
    that
    the model is not quantized.
    """
    environment = os.environ | {"OV_ENABLE_SERIALIZE_TRACING": f"{_BEFORE},{_AFTER}"}
    command = [sys.executable, "-c", _COMPILE, str(Path(path).resolve())]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if result.returncode:
        raise InputError(f"the stock plugin cannot compile {path}: {result.stderr.strip().splitlines()[-1]}")
    before, after = (sorted(folder.glob(f"*{name}*.xml")) for name in (_BEFORE, _AFTER))
    if not before or not after:
        raise InputError(f"the native pass does not run on {path}; is it a quantized model?")
    return before[-1], after[-1]


def before_and_after(path: Path) -> tuple[Model, Model]:
    """As `trace`, with the models read."""
    with tempfile.TemporaryDirectory() as folder:
        return tuple(
            core().read_model(file.read_bytes(), file.with_suffix(".bin").read_bytes())
            for file in trace(path, Path(folder))
        )
