"""Samples of Visual Haystacks: drawn photographs of plain objects, and questions about them."""
