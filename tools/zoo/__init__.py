"""Quantized networks to try things on, built offline: ``python -m tools.zoo NAME... -o DIR``.

Architectures of common networks with random weights (fixed seed), quantized by NNCF or ONNX Runtime, and small networks of
rare operations, quantized by hand. Their outputs mean nothing, but they are alive: they change with the input, before
and after quantization.
"""
