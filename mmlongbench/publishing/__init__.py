"""What is needed to publish a release: rights of its assets, tables, card, Croissant, upload; and takedowns."""
