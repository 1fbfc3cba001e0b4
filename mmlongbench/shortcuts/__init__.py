"""What tells an answer without looking: the shortcut audit of a release, without a model and with several."""
