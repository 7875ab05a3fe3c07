"""Random small quantized graphs, and what must hold for each of them."""
