"""Measures `ovlpt.reference` against the real runtimes, records their answers, and prints the table of operators."""
