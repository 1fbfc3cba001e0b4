"""The metrics of this package, each of which is an entry point: the benchmark's, MMLongBench-Doc's, SMuDGE, judges."""
