"""Inputs for a model: read from a file, or random; and names for its outputs."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, product
from pathlib import Path

import numpy as np

from ovlpt.device.execution_types import last_line
from ovlpt.files import mode_of, why_not
from ovlpt.graph.constants import constant_above, precision_of
from ovlpt.graph.consumers import targets_of
from ovlpt.graph.shapes import shape_of
from ovlpt.inspect.required_sizes import required_sizes
from ovlpt.openvino_api import Model, Node, Output, PartialShape
from ovlpt.operations.families import REARRANGES
from ovlpt.precisions import NUMPY, REAL
from ovlpt.trace import InputError

_LENGTHS = (64, 128, 256, 512, 1024, 224, 240, 16000)  # the last ones for windows of 7, of 3 or 5, and for sound
_LENGTH = _LENGTHS[0]
LABELS = "labels"  # the array of a data file that is not an input


def random_inputs(model: Model, seed: int = 0, batch: int = 1, length: int | None = None) -> list[np.ndarray]:
    """One array per input: standard normal, or small non-negative integers.

    An open first dimension is ``batch``, or another one where a model takes only that, and any other ``length``, by default
    64 or what `_usual_length` finds, or the nearest that its bounds allow, but for those of which the first layers know the
    size.
    """
    generator = np.random.default_rng(seed)
    arrays = []
    for port, shape in zip(model.inputs, _shapes(model, batch, length), strict=True):
        precision = precision_of(port)
        if precision in ("f16", "f32", "f64", "bf16"):
            arrays.append(generator.standard_normal(shape).astype(NUMPY.get(precision, np.float32)))
        else:
            arrays.append(generator.integers(0, 2, shape).astype(NUMPY.get(precision, np.int32)))
    return _of_tokens(model, arrays)


def typical_inputs(
    model: Model, batch: int = 1, length: int | None = None, seed: int = 0, past: int = 0
) -> list[np.ndarray]:
    """One array per input that looks like its data: of the interval of the FakeQuantize that reads it, indices of the
    table that it selects from, bytes, else as `random_inputs`.

    Open dimensions as for `random_inputs`. ``past``: how many tokens a language model has had before.
    """
    generator = np.random.default_rng(seed)
    arrays = []
    for port, shape in zip(model.inputs, _shapes(model, batch, length), strict=True):
        precision, (interval, entries) = precision_of(port), _readers(port.get_node())
        if precision not in NUMPY and precision not in ("boolean", "bf16"):
            raise InputError(f'input "{_name(port)}" is of the type {precision}; give an array for it with -i')
        kind = NUMPY.get(precision, bool if precision == "boolean" else np.float32)
        if precision in REAL:
            low, high = interval or (-3, 3)
            array = (low + high) / 2 + (high - low) / 6 * generator.standard_normal(shape)
            array = np.clip(array, low, high) if interval else array
        elif precision == "boolean":
            array = generator.integers(0, 2, shape)
        elif entries:
            array = generator.integers(0, entries, shape)
        else:
            array = generator.integers(0, 256 if precision == "u8" else 2, shape)
        arrays.append(array.astype(kind))
    return _of_tokens(model, arrays, past)


def sequence(model: Model, batch: int, length: int, seeds: Iterable[int]) -> list[list[np.ndarray]]:
    """As `typical_inputs` for each of ``seeds``, as steps of one sequence: a language model takes ``length`` tokens first,
    then one at a time.
    """
    found: list[list[np.ndarray]] = []
    for step, seed in enumerate(seeds):
        decodes = step > 0 and _BEAMS in _names(model)
        past = length + step - 1 if decodes else 0
        found.append(typical_inputs(model, batch, 1 if decodes else length, int(seed), past))
    return found


_BEAMS = "beam_idx"


def _names(model: Model) -> list[str]:
    return [_name(port) for port in model.inputs]


def _of_tokens(model: Model, arrays: list[np.ndarray], past: int = 0) -> list[np.ndarray]:
    """What a language model with a cache, as optimum-intel exports it, is told of its tokens: after ``past`` others none is
    masked, positions go on, and each beam goes on with its own past.
    """
    names = _names(model)
    if _BEAMS not in names or not model.get_sinks():
        return arrays
    for place, name in enumerate(names):
        array = arrays[place]
        if name == _BEAMS:
            arrays[place] = np.arange(array.size, dtype=array.dtype)
        elif name == "attention_mask" and array.ndim == 2:
            arrays[place] = np.ones((array.shape[0], past + array.shape[1]), array.dtype)
        elif name == "position_ids" and array.ndim == 2:
            last = (_readers(model.inputs[place].get_node())[1] or past + array.size) - 1
            places = np.minimum(past + np.arange(array.shape[1]), last)  # a plugin reads past the end of a table
            arrays[place] = np.broadcast_to(places, array.shape).astype(array.dtype)
    return arrays


def open_sizes(model: Model) -> list[tuple[int, int]]:
    """Values of batch and length for `typical_inputs` at which a model with dynamic sizes is worth a run, 1 among them;
    one pair without dynamic sizes.
    """
    pairs: dict[tuple, tuple[int, int]] = {}
    usual = _usual_length(model)
    for batch, length in ((1, usual), (1, 1), (2, usual), (2, 1)):
        pairs.setdefault(tuple(map(tuple, _sizes(model, batch, length))), (batch, length))
    return list(pairs.values())


def _readers(parameter: Node) -> tuple[tuple[float, float] | None, int]:
    """The interval of the FakeQuantize that reads an input, before the scales and shifts on the way; and the number of
    entries of a table that it selects from, 0 for none.
    """
    pending: list[tuple[Node, Callable[[np.ndarray], np.ndarray]]] = [(parameter, lambda values: values)]
    for node, invert in pending:
        for target in (target for port in node.outputs() for target in targets_of(port)):
            reader, kind = target.get_node(), target.get_node().get_type_name()
            if kind == "FakeQuantize" and target.get_index() == 0:
                ends = [constant_above(reader.input_value(port)) for port in (1, 2)]
                if all(end is not None for end in ends):
                    low, high = sorted(float(np.mean(invert(end.astype(np.float64)))) for end in ends)
                    return (low, high), 0
            elif kind == "Gather" and target.get_index() == 1:
                axis, shape = constant_above(reader.input_value(2)), reader.get_input_partial_shape(0)
                if axis is not None and shape.rank.is_static and shape[int(axis.item())].is_static:
                    return None, shape[int(axis.item())].get_length()
            elif kind in REARRANGES | {"Convert"} and target.get_index() == 0:
                pending.append((reader, invert))
            elif kind in _INVERSES:
                other = constant_above(reader.input_value(1 - target.get_index()))
                if other is not None and not (kind in ("Multiply", "Divide") and (other == 0).any()):
                    inverse = _INVERSES[kind][target.get_index()]
                    mean = float(other.astype(np.float64).mean())
                    pending.append((reader, partial(_undone, inverse, mean, invert)))
    return None, 0


def _undone(inverse: Callable, constant: float, before: Callable, values: np.ndarray) -> np.ndarray:
    return before(inverse(values, constant))


_INVERSES: dict[str, tuple[Callable, ...]] = {  # by the port of the data: its value for a result and a constant
    "Add": (np.subtract, np.subtract),
    "Subtract": (np.add, lambda y, c: c - y),
    "Multiply": (np.divide, np.divide),
    "Divide": (np.multiply, lambda y, c: c / y),
}


def output_names(model: Model) -> list[str]:
    """A name for each output, no two alike."""
    names: list[str] = []
    for index, port in enumerate(model.outputs):
        names.append(next((name for name in sorted(port.get_names()) if name not in names), f"output {index}"))
    return names


def _usual_length(model: Model) -> int:
    """The first of `_LENGTHS` at which the model's own sizes agree; 64 if none is.

    A detector that ends with the 300 best boxes has fewer in a picture of 64 x 64.
    """
    shapes = [port.get_partial_shape() for port in model.inputs]
    if any(shape.rank.is_dynamic for shape in shapes) or all(shape.is_static for shape in shapes):
        return _LENGTH
    fill = partial(_filled, model, 1, required=required_sizes(model), batch_axes=_first_axes(model))
    return next((length for length in _LENGTHS if _agree(model, fill(length))), _LENGTH)


def _agree(model: Model, shapes: Sequence[Sequence[int]]) -> bool:
    """Whether OpenVINO infers sizes from those of the inputs, and no TopK picks more than there are, which plugins refuse."""
    fixed = model.clone()
    try:
        fixed.reshape({place: PartialShape(list(shape)) for place, shape in enumerate(shapes)})
    except RuntimeError:
        return False
    picks = [node for node in fixed.get_ops() if node.get_type_name() == "TopK"]
    sizes = ((shape_of(node.output(0)) or (), shape_of(node.input_value(0)) or ()) for node in picks)
    return not any(
        None not in (most, there) and most > there for pair in sizes for most, there in zip(*pair, strict=False)
    )


def _shapes(model: Model, batch: int, length: int | None) -> list[list[int]]:
    """The sizes of each input, open ones filled. Raises `InputError` for an open rank."""
    for port in model.inputs:
        if port.get_partial_shape().rank.is_dynamic:
            raise InputError(f'input "{_name(port)}" has no known rank; give an array for it with -i')
    return _sizes(model, batch, length or _usual_length(model))


def _sizes(model: Model, batch: int, length: int) -> list[list[int]]:
    """Of the inputs of known rank.

    A state of recurrent layers, or a sequence before its batch, has the batch on another axis than the first.
    """
    fill = partial(_filled, model, batch, length, required_sizes(model))
    usual = fill(_first_axes(model))
    open_inputs = sum(port.get_partial_shape().is_dynamic for port in model.inputs)
    if open_inputs < 2 or len(usual) < len(model.inputs) or _agree(model, usual):
        return usual
    return next(filter(partial(_agree, model), map(fill, _batch_axes(model))), usual)


def _first_axes(model: Model) -> list[int | None]:
    return [0] * len(model.inputs)


_TRIED = 16  # ways to place the batch


def _batch_axes(model: Model) -> Iterator[list[int | None]]:
    """Axes of the batch for each input, None for no batch; inputs of one shape have one axis. Those come first that have
    the most first axes.
    """
    shapes = {str(port.get_partial_shape()): port.get_partial_shape() for port in model.inputs}
    ways = [[0, *(axis for axis in range(1, len(shape)) if shape[axis].is_dynamic), None] for shape in shapes.values()]
    found = islice(product(*ways), 1, _TRIED)
    for way in sorted(found, key=lambda way: (sum(axis != 0 for axis in way), way.count(None))):
        axes = dict(zip(shapes, way, strict=True))
        yield [axes[str(port.get_partial_shape())] for port in model.inputs]


def _filled(
    model: Model, batch: int, length: int, required: Sequence[Mapping[int, int]], batch_axes: Sequence[int | None]
) -> list[list[int]]:
    return [
        [
            _length(size, known.get(axis, batch if axis == batch_axis else length))
            for axis, size in enumerate(port.get_partial_shape())
        ]
        for port, known, batch_axis in zip(model.inputs, required, batch_axes, strict=True)
        if port.get_partial_shape().rank.is_static
    ]


def _length(size, wanted: int) -> int:
    """The nearest to ``wanted`` that a Dimension can be; an open end is -1."""
    most = size.get_max_length()
    return max(size.get_min_length(), wanted if most < 0 else min(wanted, most))


def load_inputs(path: str | Path, model: Model) -> list[np.ndarray]:
    """One array per input from an ``.npz`` whose keys are input names (one unnamed array will do for one input), or
    from an ``.npy``.

    Raises `InputError` for an unreadable file, and for arrays that are missing or of another shape.
    """
    arrays = _by_input(load_arrays(path), model, path)
    for port, array in zip(model.inputs, arrays, strict=True):
        if not _fits(port, array.shape):
            raise _another_shape(port, array)
    return [_converted(port, array) for port, array in zip(model.inputs, arrays, strict=True)]


def load_samples(
    data: str | Path | Mapping[str, np.ndarray] | Sequence[np.ndarray], model: Model
) -> tuple[list[list[np.ndarray]], np.ndarray | None]:
    """One array per input for each sample, and the labels [samples × batch] if the file has an array "labels".

    ``data``: a file as for `load_inputs`, its arrays by name, or in the order of the inputs; with any number of samples: arrays
    are divided along their first axis, by the model's batch or, where they have one axis more than the input, one by
    one. Raises `InputError` as well when inputs have different numbers of samples, or labels do not divide by theirs.
    """
    stored: Mapping[str, np.ndarray] = {}
    label = data if isinstance(data, (str, Path)) else "the data"
    if isinstance(data, (str, Path)):
        arrays = _by_input(stored := load_arrays(data), model, label)
    elif isinstance(data, Mapping):
        arrays = _by_input(stored := data, model, label)
    else:
        arrays = [np.asarray(array) for array in data]
    if len(arrays) != len(model.inputs):
        raise InputError(
            f"the model has {len(model.inputs)} inputs, and {len(arrays)} arrays are given; give one for each"
        )
    columns = {
        _name(port): [_converted(port, part) for part in _divided(port, array)]
        for port, array in zip(model.inputs, arrays, strict=True)
    }
    counts = {name: len(column) for name, column in columns.items()}
    if len(set(counts.values())) > 1:
        raise InputError(f"the data has different numbers of samples, {counts}; give every input as many")
    samples = [list(row) for row in zip(*columns.values(), strict=True)]
    labels = stored.get(LABELS)
    if labels is not None and (not samples or labels.size % len(samples)):
        raise InputError(f'"{label}" has {labels.size} labels for {len(samples)} samples; give one for each answer')
    return samples, None if labels is None else labels.reshape(-1)


def load_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """The arrays of an ``.npz`` by their names; that of an ``.npy`` has none, "". Raises `InputError`."""
    try:
        mode = mode_of(path)
        if mode is None:
            raise InputError(f'no file "{path}"; give an .npz or .npy of arrays')
        if not stat.S_ISREG(mode):
            raise OSError(0, "it is not a file")
        stored = np.load(path)
        if isinstance(stored, np.ndarray):
            arrays = {"": stored}
        else:
            with stored:
                arrays = {key: stored[key] for key in stored.files}
    except InputError:
        raise
    except Exception as error:  # of the archive, of its compression, of a header, of an array too large
        reason = why_not(error) if isinstance(error, OSError) else last_line(error)
        if "allow_pickle" in reason:  # numpy's advice, for any file that begins as none of its own does
            reason = "it is neither, or holds objects of Python"
        raise InputError(f'"{path}" is not an .npz or .npy file of arrays: {reason}') from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
            kind = f"of {array.dtype}" if isinstance(array, np.ndarray) else "no array"
            raise InputError(f'"{path}" holds no numbers: {name or "it"} is {kind}; give arrays of integers or floats')
    return arrays


def _by_input(stored: Mapping[str, np.ndarray], model: Model, path: str | Path) -> list[np.ndarray]:
    """One array per input, whatever its shape."""
    arrays = {name: array for name, array in stored.items() if name != LABELS}
    if len(arrays) == 1 and len(model.inputs) == 1:
        return list(arrays.values())
    found = []
    for port in model.inputs:
        names = {*port.get_names(), port.get_node().get_friendly_name()}
        match = next((arrays[name] for name in names if name in arrays), None)
        if match is None:
            raise InputError(f'"{path}" has no array for input "{_name(port)}"; it has {", ".join(arrays) or "none"}')
        found.append(match)
    return found


def _fits(port: Output, shape: tuple[int, ...]) -> bool:
    expected = port.get_partial_shape()
    return expected.rank.is_dynamic or (
        len(expected) == len(shape)
        and all(size.is_dynamic or size.get_length() == actual for size, actual in zip(expected, shape, strict=True))
    )


def _divided(port: Output, array: np.ndarray) -> list[np.ndarray]:
    expected = port.get_partial_shape()
    if _fits(port, array.shape):
        return [array]
    if array.ndim and _fits(port, array.shape[1:]):
        return list(array)
    batch = expected[0].get_length() if len(expected) and expected[0].is_static else 0
    if batch and array.ndim and array.shape[0] % batch == 0 and _fits(port, (batch, *array.shape[1:])):
        return np.split(array, array.shape[0] // batch) if array.size else []
    raise _another_shape(port, array)


def _another_shape(port: Output, array: np.ndarray) -> InputError:
    return InputError(
        f'input "{_name(port)}" takes the shape {port.get_partial_shape()}, its array has {list(array.shape)}; '
        "give it in that shape"
    )


def _converted(port: Output, array: np.ndarray) -> np.ndarray:
    precision = precision_of(port)
    return array.astype(NUMPY[precision], copy=False) if precision in NUMPY else array


def _name(port: Output) -> str:
    return next(iter(sorted(port.get_names())), port.get_node().get_friendly_name())
