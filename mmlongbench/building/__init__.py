"""Builds a release. One table lists the stages, each of which has independent shards. Executors run the shards in
processes, and a working folder keeps the results.
"""
