"""For people who work on ovlpt or measure it; not installed with the package."""
