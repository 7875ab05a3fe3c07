"""Step 3: quantizations are decomposed and dequantizations move through the operations."""
