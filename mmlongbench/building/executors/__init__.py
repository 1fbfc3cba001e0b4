"""Executors: what maps shards to processes, on this machine or on the nodes of a cluster."""
