"""Models and settings as parcels: files that a worker reads or asks for."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path

from ovlpt.config import PluginConfig
from ovlpt.config_file import load_config
from ovlpt.device.model_zoo import quantized_file
from ovlpt.device.saving import save_model
from ovlpt.fleet.parcel import Parcel
from ovlpt.fleet.tasks import Task
from ovlpt.openvino_api import Model
from ovlpt.trace import InputError

_MODELS = ("model", "against")
Settings = Parcel | bytes | None  # a TOML file, a pickled PluginConfig, the device's own


def model_parcel(model: Model | str | Path, read: Model, folder: Path, name: str) -> Parcel:
    """The files of an IR; anything else is saved, as it was ``read``, as IR in ``folder`` under ``name``, constants as
    they are.
    """
    path = Path(model) if isinstance(model, (str, Path)) else None
    if path is None or path.suffix != ".xml":
        path = folder / f"{name}.xml"
        save_model(read, path)
    return file_parcel(path)


def file_parcel(model: str | Path) -> Parcel:
    """The files of a quantized model as they are: of an IR both."""
    path = quantized_file(Path(model))
    weights = [path.with_suffix(".bin")] if path.suffix == ".xml" else []
    return Parcel.of(path, *(each for each in weights if each.exists()))


def task_on_files(
    label: str, function: Callable[..., object], options: Mapping[str, object], files: Mapping[str, str | Path]
) -> Task:
    """The call ``function(options, parcels)``, both as pairs of an argument's name and its value. ``files``: by the names
    of the arguments; "model" and "against" are models.
    """
    parcels = {name: (file_parcel if name in _MODELS else Parcel.of)(path) for name, path in files.items()}
    content = json.dumps([label, options, {name: parcel.digest for name, parcel in parcels.items()}])
    key = hashlib.sha256(content.encode()).hexdigest()
    return Task(key, label, function, (tuple(options.items()), tuple(parcels.items())))


def settings_parcel(config: PluginConfig | str | Path | None) -> Settings:
    """Settings on their way to a worker. Raises `InputError` for those that another process cannot read."""
    if config is None:
        return None
    if isinstance(config, (str, Path)):
        load_config(config)  # what is wrong with it is said now
        return Parcel.of(config)
    try:
        return pickle.dumps(config)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            "settings that hold functions of a script cannot be passed to another process; give the path of a TOML file"
        ) from error


def settings_here(settings: Settings) -> PluginConfig | None:
    """What a worker reads."""
    if settings is None:
        return None
    return pickle.loads(settings) if isinstance(settings, bytes) else load_config(settings.here()[0])


def digest_of(settings: Settings) -> str:
    """Equal for equal settings."""
    if settings is None:
        return ""
    return hashlib.sha256(settings).hexdigest() if isinstance(settings, bytes) else settings.digest
