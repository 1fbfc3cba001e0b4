"""Executors: they run shards in processes, on this machine or on the nodes of a cluster."""
