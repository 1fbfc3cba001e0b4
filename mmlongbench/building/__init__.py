"""Building: four stages of independent shards, a working folder, and an engine that maps shards to processes."""
