"""What one plugin can execute, as data."""

from __future__ import annotations

from ovlpt.plugin_config import cpu

from ovlpt.config import PluginConfig
from ovlpt.openvino_api import Core
from ovlpt.trace import InputError

__all__ = ["cpu", "for_device"]


def for_device(core: Core, device: str = "CPU") -> PluginConfig:
    """The configuration of a device of ``core``, asked for its capabilities.

    Raises `InputError` for a device that the core does not have or that has no configuration yet.
    """
    if device not in core.available_devices:
        raise InputError(f'no device "{device}" on this machine; available: {", ".join(core.available_devices)}')
    if device != "CPU":
        raise InputError(f'no configuration for device "{device}"; pass your own PluginConfig, or use "CPU"')
    return cpu.config(core.get_property(device, "OPTIMIZATION_CAPABILITIES"))
