"""Building a release: stages of independent shards in one table, a working folder, and executors that run shards in
processes.
"""
