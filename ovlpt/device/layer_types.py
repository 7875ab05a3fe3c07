"""Types of layers that plugins execute, by the CPU's and the GPU's names: what each computes.

Most layers have the type of their operation. The counters of benchmark_app have it always, an execution graph where the
plugin has no name of its own.
"""

from __future__ import annotations

from ovlpt.operations import RECURRENT, WEIGHTED

BOUNDARY = frozenset(("Const", "Input", "Output"))  # no computation, whatever kernel they name
PASS_ON = frozenset(  # memory as it is, most of the time
    ("Reshape", "Squeeze", "Unsqueeze", "MemoryInput", "MemoryOutput", "ReadValue", "Assign")
)
CONVERTS = frozenset(("Reorder", "Convert"))  # they change a type or a layout, and nothing else
MOVES = frozenset(  # values to another place; nothing is computed
    ("Split", "Concatenation", "Concat", "Transpose", "Permute", "Reshape", "Squeeze", "Unsqueeze", "Gather",
     "GatherElements", "GatherND", "StridedSlice", "Crop", "Pad", "Border", "Tile", "Broadcast", "ShuffleChannels",
     "DepthToSpace", "SpaceToDepth", "BatchToSpace", "SpaceToBatch", "Roll", "Reverse", "ReverseSequence",
     "ScatterUpdate", "ScatterElementsUpdate", "ScatterNDUpdate", "MemoryInput", "MemoryOutput", "ExtractImagePatches")
)  # fmt: skip

# The layers that compute an operation, where plugins have names of their own for it.
COMPUTED_BY = {
    "Convolution": ("Convolution",),
    "GroupConvolution": ("Convolution",),
    "ConvolutionBackpropData": ("Deconvolution",),
    "GroupConvolutionBackpropData": ("Deconvolution",),
    "MatMul": ("FullyConnected", "MatMul", "Gemm"),
    "LSTMSequence": ("RNNSeq", "LSTM_Seq"),
    "GRUSequence": ("RNNSeq",),
    "MaxPool": ("Pooling",),
    "AvgPool": ("Pooling",),
    "FakeQuantize": ("FakeQuantize", "Quantize"),
}

_WITH_RULES = WEIGHTED.union(RECURRENT)
# Of operations that have weights and a rule: what can run in int8.
WEIGHTED_LAYERS = _WITH_RULES.union(*(COMPUTED_BY[name] for name in _WITH_RULES))
# Those, and others that multiply data with weights or with other data.
MULTIPLYING_LAYERS = WEIGHTED_LAYERS | {
    "BinaryConvolution", "DeformableConvolution", "LSTMCell", "GRUCell", "RNNCell", "ScaledDotProductAttention",
}  # fmt: skip
