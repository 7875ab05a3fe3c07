"""Every reason that a transformation or an answer gives: what kind of reason it is, and what would change it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """What keeps an operation in float, or a network from being faster."""

    GRAPH = "graph"  # operations without a rule
    PLACEMENT = "placement"  # what the quantizer quantized, and how
    SETTINGS = "settings"  # restrictions and callbacks
    MOVEMENT = "data movement"  # copies, other layouts, conversions between int8 and float
    MEMORY = "memory"  # int8 layers with few products for each value that they read
    TOO_SMALL = "too small"  # calling the layers takes longer than they do
    HARDWARE = "hardware"  # no int8, no VNNI, no int8 kernel
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Row:
    """One code. ``help``: what would change it, if anything can.

    ``incidental``: said of an operation that another one explains: met on the way, fused into a layer, run in a body.
    ``of_weights``: about the weights of a layer, not its data. ``of_activations``: about its data, which may have been
    changed on the way from a FakeQuantize. ``vague``: no answer where the given model shows a cause. ``for_data``: the
    code that says the same of data, for a second input of activations, which a transformation calls weights.
    """

    code: str
    cause: Cause = Cause.GRAPH
    help: str | None = None
    incidental: bool = False
    of_weights: bool = False
    of_activations: bool = False
    vague: bool = False
    for_data: str | None = None


_PLACEMENT, _SETTINGS, _DEVICE = Cause.PLACEMENT, Cause.SETTINGS, Cause.HARDWARE

# Of transformations that no answer quotes, or that no quantization and no setting changes.
_OF_THE_GRAPH = [
    "absent",
    "added_axes",
    "align_corners",
    "as_convolution",
    "assigned",
    "attributes",
    "auto_pad",
    "boolean_mask",
    "broadcast",
    "broadcast_rank",
    "ceil_torch",
    "channel_moves",
    "channel_order",
    "channel_shuffle",
    "channels_merge",
    "clip_apart_from_range",
    "clip_narrower",
    "clipped_state",
    "concatenated",
    "condition",
    "constant",
    "constant_data",
    "constant_output",
    "constant_rank",
    "constant_shape",
    "counted_padding",
    "different_data",
    "differs_between_channels",
    "dilation",
    "dynamic_bias",
    "dynamic_channels",
    "dynamic_concat_axis",
    "dynamic_constants",
    "dynamic_intervals",
    "dynamic_rank",
    "dynamic_shape",
    "dynamic_weights",
    "ellipsis",
    "empty_interval",
    "factor_by_position",
    "falling",
    "few_channels",
    "fewer_levels",
    "four_bits",
    "full_branch",
    "grouped_weights",
    "indices",
    "inference_is_training",
    "initial_value",
    "inner_node_read",
    "input_zero_point",
    "input_zero_point_not_integer",
    "integer_quotient",
    "interpolated_axes",
    "interpolation_mode",
    "intervals_apart",
    "kinds",
    "large_offset",
    "layouts",
    "levels_not_256",
    "levels_not_divisible_by_4",
    "low_precision",
    "lower_bound",
    "negative_scale_after_relu",
    "no_concat",
    "no_initial_value",
    "no_markup",
    "no_normalization",
    "no_read_value",
    "no_rule",
    "no_second_round",
    "no_sequence",
    "no_store",
    "no_weights",
    "no_zero_point",
    "normalized_axes",
    "not_canonicalized",
    "not_constant",
    "not_decomposed",
    "not_exact_enough",
    "not_finite",
    "not_homogeneous",
    "not_last",
    "not_negative",
    "not_quantizable",
    "not_real",
    "odd_shift_across_round",
    "off_concat_axis",
    "one_split",
    "open_sizes",
    "other_axis",
    "other_reader",
    "output",
    "output_low",
    "output_scale_not_one",
    "overflow",
    "pad_value",
    "padded_axes",
    "padding",
    "per_position",
    "permuted_channels",
    "pieces",
    "pool",
    "pooled_size",
    "quantized_output",
    "rank",
    "rearranged_integers",
    "recurrent",
    "recurrent_grid",
    "redundant",
    "relu_first",
    "repeated_channels",
    "reshapes_first",
    "rounds",
    "scales_of_outputs",
    "several_consumers",
    "shared",
    "shared_constant",
    "shift_not_integer",
    "shift_not_small",
    "sources",
    "split_axis",
    "stored_integers",
    "stored_low",
    "stored_operand",
    "strides",
    "training_output",
    "transposed",
    "two_activations",
    "unequal_pieces",
    "unused",
    "upper_bound",
    "weights_rank",
    "weights_shapes",
    "wide_interval",
]

_ROWS = (
    Row("bias", incidental=True),
    Row("body", incidental=True),
    Row("decomposed", incidental=True),
    Row("lowered", incidental=True),
    Row("no_elementwise", incidental=True),
    Row("transformed_before", incidental=True),
    Row("weights", incidental=True),
    Row(
        "activation_precision",
        _PLACEMENT,
        "allow this type in the restrictions, or quantize to an interval that asks for another",
        of_activations=True,
    ),
    Row("alignment", _PLACEMENT, "quantize the inputs of the Concat to intervals that are closer to each other"),
    Row("constant_off_grid", _PLACEMENT),
    Row("contracted_scale", _PLACEMENT, "quantize per tensor"),
    Row("data_grid", _PLACEMENT, "quantize the data to 8 bits, per tensor"),
    Row("different_dequantizations", _PLACEMENT, "quantize both inputs to one interval"),
    Row("fake_quantize_stays", _PLACEMENT),
    Row("float_result", _PLACEMENT),
    Row("fractional_zero_point", _PLACEMENT, "quantize to an interval whose grid contains zero", of_weights=True),
    Row("gathered_scale", _PLACEMENT),
    Row("interval", _PLACEMENT, "quantize the data to an interval that contains zero"),
    Row("levels", _PLACEMENT, "quantize to 256 levels"),
    Row("lost_upstream", _PLACEMENT),
    Row("maps_range", _PLACEMENT),
    Row("mixed_precisions", _PLACEMENT),
    Row("negative", _PLACEMENT),
    Row("negative_scale", _PLACEMENT, "quantize with positive scales"),
    Row("no_fake_quantize", _PLACEMENT, "put a FakeQuantize on this input"),
    Row("no_scale", _PLACEMENT),
    Row("not_dequantized", _PLACEMENT),
    Row("not_per_channel", _PLACEMENT, "quantize per tensor or per channel"),
    Row("not_quantized", _PLACEMENT, "put a FakeQuantize on this input"),
    Row("per_channel", _PLACEMENT, "quantize per tensor"),
    Row("per_channel_activations", _PLACEMENT, "quantize these activations per tensor", of_activations=True),
    Row("product", _PLACEMENT),
    Row("quantization_differs", _PLACEMENT),
    Row("reduced_scale", _PLACEMENT, "quantize per tensor"),
    Row("rounded_away", _PLACEMENT, "hide with a smaller number, or do not quantize the mask"),
    Row("scale_shape", _PLACEMENT),
    Row("spatial_scale", _PLACEMENT),
    Row("state_not_quantized", _PLACEMENT, "put a FakeQuantize on the initial state"),
    Row(
        "weights_granularity",
        _PLACEMENT,
        "quantize the weights per output channel or per tensor",
        of_weights=True,
        for_data="per_channel_activations",
    ),
    Row("weights_grid", _PLACEMENT, "quantize both weights per tensor, or both per output channel", of_weights=True),
    Row(
        "weights_levels",
        _PLACEMENT,
        "quantize the weights to 255 levels around zero",
        of_weights=True,
        for_data="levels",
    ),
    Row("weights_not_quantized", _PLACEMENT, "quantize the weights", of_weights=True, for_data="not_quantized"),
    Row("weights_precision", _PLACEMENT, of_weights=True, for_data="activation_precision"),
    Row("weights_range", _PLACEMENT, "quantize the weights symmetrically", of_weights=True, for_data="zero_point"),
    Row("weights_zero_point", _PLACEMENT, "quantize the weights symmetrically", of_weights=True, for_data="zero_point"),
    Row(
        "weights_zero_point_range",
        _PLACEMENT,
        "quantize the weights to an interval that contains zero",
        of_weights=True,
        for_data="zero_point_range",
    ),
    Row("zero_point", _PLACEMENT, "quantize symmetrically", vague=True),
    Row("zero_point_precision", _PLACEMENT, of_weights=True),
    Row("zero_point_range", _PLACEMENT, "quantize to an interval that contains zero", of_activations=True),
    Row("zero_scale", _PLACEMENT),
    Row("callback", _SETTINGS, "remove this callback, if the device has a kernel", vague=True),
    Row("cleanup_disabled", _SETTINGS),
    Row("consumer_forbids", _SETTINGS, "let all consumers of this tensor take the same integer type", vague=True),
    Row("disabled", _SETTINGS, "enable the pass"),
    Row("restriction", _SETTINGS, "lift the restriction"),
    Row(
        "conversion",
        Cause.MOVEMENT,
        "give the model's inputs and outputs the type and layout of the layers next to them",
    ),
    Row("data_movement", Cause.MOVEMENT, "a network that copies less here: no precision avoids the copy"),
    Row(
        "few_products",
        Cause.MEMORY,
        "larger batches, or fewer and wider layers: more multiplications for each value read",
    ),
    Row("unknown", help="nothing in the model can change this"),
    Row("activations", _DEVICE),
    Row("float_kernel", _DEVICE),
    Row("linear_before_reset", _DEVICE, "use a GRU without linear_before_reset"),
    Row("no_kernel", _DEVICE, vague=True),
    Row("no_layer", _DEVICE),
    Row("pairs_saturate", _DEVICE),
    Row("sequence_lengths", _DEVICE),
    Row("weights_lost", _DEVICE),
    Row("release", _DEVICE),
    Row("dynamic_scales", help="quantize the network statically, on samples"),
    Row("no_consumer", vague=True),
    *map(Row, _OF_THE_GRAPH),
)

ROWS: dict[str, Row] = {}


def add(row: Row) -> None:
    """A custom code, for transformations that are not part of the package. Raises ValueError for a code that exists."""
    if row.code in ROWS:
        raise ValueError(f'there is a reason "{row.code}" already; take another code')
    ROWS[row.code] = row


for _row in _ROWS:
    add(_row)
