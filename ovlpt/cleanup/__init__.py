"""Step 4: dequantizations that found no consumer go back to where they came from, or shrink."""
