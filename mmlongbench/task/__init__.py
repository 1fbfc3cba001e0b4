"""What a task author subclasses and receives: contracts, sources, take orders. Knows no manifest and no build."""
