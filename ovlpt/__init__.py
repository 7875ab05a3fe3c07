"""OpenVINO's Low Precision Transformations in Python. Each name is imported when it is first used."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

_HOMES = {
    "ovlpt.config": (
        "Params",
        "PassConfig",
        "PluginConfig",
        "PrecisionsRestriction",
        "QuantizationGranularityRestriction",
    ),
    "ovlpt.config_file": ("load_config",),
    "ovlpt.device": ("PluginLowering", "compile_model", "execution_types", "save_model", "transform"),
    "ovlpt.fusions": ("fuse",),
    "ovlpt.inspect.bench": ("bench",),
    "ovlpt.inspect.check": ("check",),
    "ovlpt.inspect.compare": ("compare",),
    "ovlpt.inspect.explain": ("explain",),
    "ovlpt.inspect.report": ("report",),
    "ovlpt.inspect.run": ("run",),
    "ovlpt.inspect.verify": ("verify",),
    "ovlpt.low_precision": ("LowPrecision",),
    "ovlpt.prerequisites.common_optimizations": ("CommonOptimizations",),
    "ovlpt.trace": ("InputError", "Trace"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = ("plugin_config", "predicates")

__all__ = sorted((*_HOME, *_MODULES))

if not Path(__file__).with_name("plugin_config").is_dir():  # it lies beside this folder until the package is built
    __path__.append(str(Path(__file__).parents[1]))


def __getattr__(name: str) -> object:
    if name in _HOME:
        globals()[name] = found = getattr(import_module(_HOME[name]), name)
        return found
    if not name.startswith("_") and find_spec(f"ovlpt.{name}") is not None:
        return import_module(f"ovlpt.{name}")
    raise AttributeError(f"module 'ovlpt' has no attribute '{name}'")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
