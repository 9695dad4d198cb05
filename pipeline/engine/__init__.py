"""The kernel, its eigenpairs, and the memory that they take."""
