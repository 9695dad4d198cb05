"""Scores, tests and baselines."""
