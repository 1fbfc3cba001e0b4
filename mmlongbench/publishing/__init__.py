"""What is needed to publish a release: the rights of its assets, and takedowns."""
