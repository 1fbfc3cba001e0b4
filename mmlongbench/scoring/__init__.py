"""Scoring: predictions joined to examples, metrics run over them, and reports."""
