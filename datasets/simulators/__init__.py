"""Seeded simulators with their truth."""
