"""Drops of questions that make a release harder to solve without looking, written as errata."""
