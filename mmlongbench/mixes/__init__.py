"""Training mixes: examples chosen by shares of tasks, a histogram of lengths and a token budget, and the proof that
they share nothing with evaluation releases.
"""
