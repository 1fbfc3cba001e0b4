"""Building: stages of independent shards in one table, a working folder, and executors that map shards to processes."""
