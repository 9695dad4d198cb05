"""The experiments of the paper and the demonstrations, as users of the public functions."""
