"""Samples of one block to features."""
