"""A program of its own: compile a model, infer once, print the peak memory of the process in bytes.

    python -P peak_memory.py MODEL DEVICE PROPERTIES.json INPUTS.npz [CONFIG.toml]

With the last argument ovlpt transforms the model first ("": with the device's own settings); without it, the process
never imports ovlpt, as that of somebody who does not use it. Nothing is printed where peak memory is not to be had.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import openvino


def main(model: str, device: str, properties: str, inputs: str, config: str | None = None) -> None:
    settings = json.loads(properties)
    core = openvino.Core()
    if config is None:
        compiled = core.compile_model(core.read_model(model), device, settings)
    else:
        from ovlpt.config_file import load_config
        from ovlpt.device import compile_quantized

        chosen = load_config(config) if config else None
        compiled = compile_quantized(model, device, settings, chosen, core=core)
    with np.load(inputs) as arrays:
        compiled([arrays[name] for name in arrays.files])
    peak = peak_memory()
    if peak is not None:
        print(peak)


def peak_memory() -> int | None:
    """Peak resident memory of this process in bytes; None where the system does not say."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would hold the parent's peak as well
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    if sys.platform == "darwin":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
