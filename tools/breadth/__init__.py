"""Many architecture families with random weights, quantized: does ovlpt keep what stock keeps on each?

``python -m tools.breadth DIR`` builds and measures one after the other, each in a process of its own; what
``DIR/results.jsonl`` holds is not done again.
"""
