"""Releases: names and formats of files, the lock, the audit."""
