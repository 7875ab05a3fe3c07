"""Step 1: the graph is brought into the form that the main step expects."""
