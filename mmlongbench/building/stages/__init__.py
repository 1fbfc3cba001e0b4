"""The stages of a build, one module a stage, and the table that lists them in order."""
