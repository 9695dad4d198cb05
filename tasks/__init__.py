"""The mathematics of one block: NumPy arrays in, NumPy arrays out.

Nothing in this folder knows Dask, xarray or Zarr; a function here sees the block that one task
receives and no chunk, dimension name or label. Graphs and labels are built in ``pipeline``.
"""
