"""The algebra of FakeQuantize and of a layer's post-operations (numpy, no graph).

definition  what FakeQuantize computes
forms       its scales, zero points, U8 and I8 forms; when an integer store does its work
chain       basic operations after a layer: run them, read them
simplify    rules that shorten a chain, each with its exactness and its refusals
composer    from basic operations to oneDNN's scales and post-operations, as the CPU plugin does it
hazards     where that is not what the model says
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ovlpt.fake_quantize.definition import check_parameters, fake_quantize

if TYPE_CHECKING:
    from ovlpt.fake_quantize.chain import Chain, decompose
    from ovlpt.fake_quantize.composer import predict
    from ovlpt.fake_quantize.forms import FakeQuantize, adjust, quantize_only

__all__ = [
    "Chain",
    "FakeQuantize",
    "adjust",
    "check_parameters",
    "decompose",
    "fake_quantize",
    "predict",
    "quantize_only",
]
_HOMES = {
    "chain": ("Chain", "decompose"),
    "composer": ("predict",),
    "forms": ("FakeQuantize", "adjust", "quantize_only"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """What the pass does not need is imported when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'ovlpt.fake_quantize' has no attribute '{name}'")
    return getattr(import_module(f"ovlpt.fake_quantize.{_HOME[name]}"), name)
