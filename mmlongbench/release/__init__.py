"""Releases: names and shapes of files, the lock, the audit."""
