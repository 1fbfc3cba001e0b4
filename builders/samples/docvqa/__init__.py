"""Samples of long-document QA: drawn reports, and questions about them in the format of each reader."""
