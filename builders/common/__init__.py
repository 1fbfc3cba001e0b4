"""Code that several task families share: pages as units, checks of raw fields. It knows no family."""
