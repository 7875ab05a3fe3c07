"""What one plugin can execute, as data; `this_cpu` finds out what the data depends on.

CPU           cpu.py on x86-64, arm.py on ARM
GPU           gpu.py
AUTO, MULTI, HETERO, BATCH    the configuration of the devices they name, where these have the same one
NPU           none: its compiler handles quantization itself and takes the model as it is
any other     none: pass your own `PluginConfig`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from ovlpt.plugin_config import arm, cpu, gpu, this_cpu

from ovlpt.config import PluginConfig
from ovlpt.openvino_api import RELEASE, Core, Node
from ovlpt.trace import InputError

__all__ = [
    "arm",
    "check_physical",
    "cpu",
    "for_device",
    "gpu",
    "is_virtual",
    "kernels",
    "kind",
    "label",
    "physical_devices",
    "this_cpu",
]

VIRTUAL = ("AUTO", "MULTI", "HETERO", "BATCH")


def for_device(core: Core, device: str = "CPU", force: bool = False) -> PluginConfig:
    """The configuration of a device of ``core``, by the capabilities that it reports.

    ``force``: also for a device without int8. Raises `InputError` with the reason for a device that the core does not
    have, that has no int8 or no configuration, and for a virtual one over devices that differ.
    """
    devices = physical_devices(core, device)
    configs = [_of_one(core, each, force) for each in devices]
    if any(config != configs[0] for config in configs):
        names = ", ".join(f"{each} ({config.name})" for each, config in zip(devices, configs, strict=True))
        raise InputError(f'device "{device}" combines devices that need different models: {names}; name one of them')
    return configs[0]


def settings_of(core: Core, device: str, given: PluginConfig | None = None, force: bool = False) -> PluginConfig:
    """The settings of a call: those ``given``, the device's own, or both where the given ones extend the device's.

    Raises `InputError` for anything but a `PluginConfig`.
    """
    if not isinstance(given, PluginConfig | None):
        raise InputError(f"settings of the transformation are a PluginConfig, not a {type(given).__name__}")
    if given is not None and not given.extends_device:
        return given
    own = for_device(core, device, force)
    return own if given is None else given.on_top_of(own)


def physical_devices(core: Core, device: str) -> tuple[str, ...]:
    """The devices that a virtual one stands for ("HETERO:GPU.1,CPU"), or the device itself.

    Raises `InputError` for a virtual device over none.
    """
    name, _, listed = device.partition(":")
    if name not in VIRTUAL:
        return (device,)
    names = [each.split("(")[0].strip() for each in listed.split(",") if each.strip() and not each.startswith("-")]
    excluded = {each.strip("- ") for each in listed.split(",") if each.startswith("-")}
    if not names and name == "AUTO":
        names = [each for each in core.available_devices if each not in excluded]
    if not names:
        raise InputError(f'device "{device}" names no device; write "{name}:CPU", for instance')
    return tuple(names)


def is_virtual(device: str) -> bool:
    """Whether a device stands for others."""
    return device.partition(":")[0] in VIRTUAL


def label(core: Core, device: str) -> str:
    """What sentences and tables call a device: its name, and what it, or the first that it stands for, is in full."""
    return f"{device} ({core.get_property(physical_devices(core, device)[0], 'FULL_DEVICE_NAME').strip()})"


def check_physical(core: Core, device: str) -> None:
    """Raise `InputError` unless ``device`` is a CPU or a GPU of ``core``, named itself and not by a virtual device."""
    if is_virtual(device):
        raise InputError(
            f'device "{device}" stands for others and cannot be told to leave its own LPT off or on, as this needs; '
            f"give one of them: {', '.join(physical_devices(core, device))}"
        )
    _check_available(core, device)
    if kind(device) not in ("CPU", "GPU"):
        raise InputError(
            f'device "{device}" cannot be told to leave its own LPT off, as this needs; give a CPU or a GPU'
        )


def kind(device: str) -> str:
    """The plugin of a physical device: "GPU" of "GPU.1"."""
    return device.split(".")[0]


def kernels(
    device: str, settings: PluginConfig | None = None, floats: str = "f32"
) -> Mapping[str, Callable[[Node], bool]]:
    """Per operation, whether the plugin of a physical device executes a node as it is; empty for an unknown plugin.

    ``settings``, ``floats``: what the model is made for, and in which type it runs what is not in low precision.
    """
    if settings is not None and kind(device) == "GPU":
        return gpu.kernels(settings, floats)
    return {"CPU": cpu.KERNELS, "GPU": gpu.KERNELS}.get(kind(device), {})


def dropped_levels(device: str) -> frozenset[int]:
    """Of the quantizations that the plugin of a physical device drops before anything else, when a Relu still stands."""
    return {"CPU": cpu.DROPPED_LEVELS, "GPU": gpu.DROPPED_LEVELS}.get(kind(device), frozenset())


def _of_one(core: Core, device: str, force: bool) -> PluginConfig:
    if kind(device) == "NPU":
        raise InputError(
            f'device "{device}" takes the quantized model as it is, since its compiler handles quantization itself; '
            "pass the model to core.compile_model"
        )
    _check_available(core, device)
    if kind(device) not in ("CPU", "GPU"):
        raise InputError(f'no configuration for device "{device}"; pass your own PluginConfig, or use "CPU" or "GPU"')
    capabilities = list(core.get_property(device, "OPTIMIZATION_CAPABILITIES"))
    if "INT8" not in capabilities and not force:
        raise InputError(
            f'device "{device}" ({core.get_property(device, "FULL_DEVICE_NAME").strip()}) has no int8, only '
            f"{', '.join(each for each in capabilities if each.startswith(('FP', 'BF', 'BIN')))}: a low precision model "
            "would run in float there; compile the model as it is, or force it (force=True, --force)"
        )
    if kind(device) == "GPU":
        return gpu.config(systolic="GPU_HW_MATMUL" in capabilities)
    if str(core.get_property(device, "DEVICE_ARCHITECTURE")).startswith("arm"):
        return arm.config(convolutions=RELEASE >= (2026, 0))
    return cpu.config(
        signed_activations="BF16" in capabilities and this_cpu.takes_signed_activations(),
        slow_mat_mul=this_cpu.multiplies_slowly(),
        recurrent_kernels=this_cpu.has_recurrent_kernels(),
    )


def _check_available(core: Core, device: str) -> None:
    if device == "CPU":  # to list all of them loads their plugins
        with suppress(RuntimeError):
            core.get_property(device, "FULL_DEVICE_NAME")
            return
    available = core.available_devices
    first = f"{kind(device)}.0"  # of several; a single one may be called by either name, where it is not a CPU
    if device not in (*available, *(f"{each}.0" for each in available if each != "CPU")) and not (
        first in available and kind(device) == device
    ):
        otherwise = "; --virtual names one that is not in this machine" if kind(device) == "GPU" else ""
        raise InputError(f'no device "{device}" on this machine; available: {", ".join(available)}{otherwise}')
