"""Review of questions by people: a sheet for annotators, and what they decide."""
