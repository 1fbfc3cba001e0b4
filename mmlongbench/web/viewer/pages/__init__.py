"""The pages of the viewer, one module each."""
