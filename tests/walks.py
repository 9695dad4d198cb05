"""Recordings for commands."""

import numpy as np

IDENTITY = ("--features", "identity", "--n-modes", 2)


def walk(path, n=80, seed=0):
    np.save(path, np.random.default_rng(seed).normal(size=(n, 3)).cumsum(axis=0))
    return path


def with_nan(path):
    values = np.random.default_rng(0).normal(size=(80, 3))
    values[33, 1] = np.nan
    np.save(path, values)
