"""Recordings with a known truth, estimates of it, and how well each estimate tells it; ``answers.py`` runs them."""
