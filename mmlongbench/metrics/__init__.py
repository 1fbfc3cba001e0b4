"""The metrics of this package: those of the benchmark, MM-NIAH and MMLongBench-Doc, SMuDGE, and metrics with judges.

Each metric is registered as an entry point.
"""
