"""Scans, filters and fits over the frames of one block."""
