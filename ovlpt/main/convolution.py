from ovlpt.main.weightable_layer import WeightableLayerTransformation
from ovlpt.operations import OPERATIONS


class ConvolutionTransformation(WeightableLayerTransformation):
    """Weights [O, I, …]; the activations have one scale, since the channels are summed."""

    operation = OPERATIONS["Convolution"]
