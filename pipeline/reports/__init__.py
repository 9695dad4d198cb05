"""A result as one page: everything there is to look at, in one file that asks no network."""
