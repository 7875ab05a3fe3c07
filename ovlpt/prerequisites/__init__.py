"""Step 1: reshapes, transpositions, neighbouring constants and quantizations move to where the later steps expect them."""
