"""Let torchvision be imported where its compiled operations do not fit the torch that is installed.

A torch built for CPUs alone comes without the libraries that torchvision's file of operations is linked to; its Python
modules then fail where they describe these operations (``nms`` and others, which no network here uses).
"""

import re
from importlib.util import find_spec
from pathlib import Path

_DESCRIBED = re.compile(r'register_(?:fake|meta)\("(?:torchvision::)?(\w+)"\)')


def declare() -> None:
    """Declare the operations that torchvision's modules describe and its file does not bring; before its import."""
    import torch

    if not (spec := find_spec("torchvision")):
        return
    folder = Path(spec.submodule_search_locations[0])
    for library in sorted(folder.glob("_C*.so")):
        try:
            torch.ops.load_library(library)
        except OSError:
            continue
        return
    for name in _DESCRIBED.findall((folder / "_meta_registrations.py").read_text()):
        torch.library.define(f"torchvision::{name}", "(Tensor data) -> Tensor")
