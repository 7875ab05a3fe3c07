"""What markup leaves on the graph: OpenVINO's runtime attributes, kept beside the graph.

Runtime info holds only strings and numbers from Python and is copied with a model, so the attributes live in an
`AttributeTable` keyed by the identity of a node and a port. They survive rewiring; a clone of the model has none.
"""

from ovlpt.attributes.attribute import (
    Attribute,
    AttributeTable,
    Key,
    SharedValue,
    current_attributes,
    input_key,
    key_of,
    output_key,
)
from ovlpt.attributes.avg_pool_precision_preserved import AvgPoolPrecisionPreserved
from ovlpt.attributes.bias import Bias
from ovlpt.attributes.disable_cleanup import DisableCleanup
from ovlpt.attributes.intervals_alignment import Grid, Interval, IntervalsAlignment
from ovlpt.attributes.precision_preserved import PrecisionPreserved
from ovlpt.attributes.precisions import Precisions
from ovlpt.attributes.quantization_alignment import QuantizationAlignment
from ovlpt.attributes.quantization_granularity import QuantizationGranularity
from ovlpt.attributes.quantized_whole import QuantizedWhole
from ovlpt.attributes.restricted import Restricted
from ovlpt.attributes.weights_before_canonicalization import WeightsBeforeCanonicalization
from ovlpt.attributes.zero_point_after import ZeroPointAfter

__all__ = [
    "Attribute",
    "AttributeTable",
    "AvgPoolPrecisionPreserved",
    "Bias",
    "DisableCleanup",
    "Grid",
    "Interval",
    "IntervalsAlignment",
    "Key",
    "PrecisionPreserved",
    "Precisions",
    "QuantizationAlignment",
    "QuantizationGranularity",
    "QuantizedWhole",
    "Restricted",
    "SharedValue",
    "WeightsBeforeCanonicalization",
    "ZeroPointAfter",
    "current_attributes",
    "input_key",
    "key_of",
    "output_key",
]
