"""Joins predictions with examples, scores them with metrics, and reports the scores."""
