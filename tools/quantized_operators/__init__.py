"""Measures `ovlpt.reference` against the real runtimes, records their answers, prints the table."""
