"""How work reaches Dask: tasks, their results and progress, clusters."""
