from ovlpt.main.weightable_layer import WeightableLayerTransformation
from ovlpt.operations import OPERATIONS


class ConvolutionBackpropDataTransformation(WeightableLayerTransformation):
    """Weights [I, O, …]: the output channels are the second axis."""

    operation = OPERATIONS["ConvolutionBackpropData"]
