"""The stages of a build, one module for each, and the table that lists them in order."""
