"""Readers of files, each an xarray backend."""
