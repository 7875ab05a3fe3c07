"""A virtual GPU: the unmodified GPU plugin's decisions on a machine without one.

The plugin asks an OpenCL library for its device. Here that library is compiled from the C files of this folder: it
describes an Intel GPU, says that every program builds, and runs none. The plugin lists ``GPU``, runs its own passes,
chooses its kernels and reports its execution graph.

What to trust: whether a layer runs in int8. Kernel names and layouts may differ from a real device's. Output values and
times mean nothing; the package never reports them. On devices with matrix engines (XMX: ``dg2``, ``lnl``, ``bmg``) the
plugin would compile fused attention to machine code, which nothing here can; `properties` turns that off, so attention
appears as separate layers there.

The library is loaded into a process of its own (`ovlpt.device.own_process`): a process has one OpenCL library, and a
real GPU must not be hidden from the caller.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ovlpt.device.execution_types import last_line
from ovlpt.trace import InputError

DP4A, XMX, NO_INT8 = "DP4A", "XMX", "no int8"
GPUS = {"gen9": NO_INT8, "xelp": DP4A, "dg2": XMX, "mtl": DP4A, "lnl": XMX, "bmg": XMX}  # how each computes in int8

_FLAGS = ("-std=gnu11", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", "-Wl,-soname,libOpenCL.so.1")


def check_known(gpu: str) -> None:
    """Raise `InputError` for a GPU that is not in the table."""
    if gpu not in GPUS:
        raise InputError(f'no virtual GPU "{gpu}"; there are {", ".join(GPUS)}')


def properties(gpu: str) -> dict[str, object]:
    """Compile properties that a virtual GPU needs."""
    return {"GPU_ENABLE_SDPA_OPTIMIZATION": False} if GPUS[gpu] == XMX else {}


def load(gpu: str) -> None:
    """Make ``gpu`` the device that the GPU plugin of this process finds. Once, before the plugin is first asked.

    Raises `InputError` for a GPU that is not in the table, and on a machine that cannot build the library.
    """
    check_known(gpu)
    os.environ["OVLPT_VIRTUAL_GPU"] = gpu
    ctypes.CDLL(str(library()), mode=ctypes.RTLD_GLOBAL)


def library() -> Path:
    """The compiled library, in the user's cache folder; built at the first call after its source has changed."""
    if sys.platform != "linux":
        raise InputError("a virtual GPU needs Linux, whose loader lets a process bring its own OpenCL library")
    sources = sorted(Path(__file__).parent.glob("*.[ch]"))
    key = hashlib.sha256(b"".join(source.read_bytes() for source in sources) + " ".join(_FLAGS).encode()).hexdigest()
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ovlpt")
    built = folder / f"virtual-gpu-{key[:16]}" / "libOpenCL.so.1"
    if not built.exists():
        _build([source for source in sources if source.suffix == ".c"], built)
    return built


def _build(sources: list[Path], target: Path) -> None:
    candidates = (os.environ.get("CC"), "cc", "gcc", "clang")
    compiler = next((found for name in candidates if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise InputError(
            "a virtual GPU needs a C compiler once, and there is none of cc, gcc and clang; install one, or set CC"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder, target.name)
            command = [compiler, *_FLAGS, "-o", str(made), *map(str, sources)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise InputError(f'the C compiler "{compiler}" cannot build the virtual GPU: {last_line(done.stderr)}')
            made.replace(target)  # whole or not at all, whoever else builds it now
    except OSError as error:
        raise InputError(
            f'cannot write "{target}": {error.strerror}; set XDG_CACHE_HOME to a folder of yours'
        ) from error
