"""Notebooks, kept without outputs, and the command that runs them: ``python -m tools.notebooks``."""
