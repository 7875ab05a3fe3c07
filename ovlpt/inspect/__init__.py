"""What people ask of a model."""
