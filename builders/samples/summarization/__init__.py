"""Samples of summarization: drawn reports and court files, with their summaries."""
