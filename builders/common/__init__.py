"""What several task families share: pages as units, checks of raw fields. Knows no family."""
