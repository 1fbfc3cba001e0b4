"""Samples of many-shot learning: drawn shapes, each class a colour and a shape."""
