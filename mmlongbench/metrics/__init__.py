"""The metrics that come with the package, each an entry point: the benchmark's, MMLongBench-Doc's, SMuDGE, judges."""
