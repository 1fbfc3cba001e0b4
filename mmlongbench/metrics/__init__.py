"""The metrics that ship, each an entry point: the benchmark's, MMLongBench-Doc's, SMuDGE, judges."""
