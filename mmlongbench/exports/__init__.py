"""Writes a release in the forms that other tools run: one module a target, all over the same messages."""
