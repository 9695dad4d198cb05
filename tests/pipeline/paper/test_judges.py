"""Every claim of every experiment is judged by made-up numbers: they all hold, and each is lost by the change that it
is about."""

import numpy as np
import pytest
from made_up import ALL, noise

from manifold_observer.pipeline.paper.experiment import Claim
from manifold_observer.pipeline.paper.experiments import EXPERIMENTS
from manifold_observer.pipeline.paper.verdict import Statement, described, settle
from manifold_observer.tasks.comparison.verdicts import Finding

SURE, UNSURE = Finding(0.1, 0.05, 0.15, 1e-4), Finding(0.1, -0.1, 0.3, 0.2)


def judged(name, data):
    return {claim.claim: claim for claim in EXPERIMENTS[name].judge(data)}


def lost(name, data):
    return [text for text, claim in judged(name, data).items() if not claim.holds]


def shift(data, variable, by, **where):
    """A copy with numbers moved, or multiplied where ``by`` is a function."""
    changed = data.copy(deep=True)
    place = changed[variable].sel(**where) if where else changed[variable]
    changed[variable].loc[dict(where)] = by(place) if callable(by) else place + by
    return changed


@pytest.mark.parametrize("name", ALL)
def test_judge__all_holds_where_the_numbers_do(name):
    claims = judged(name, ALL[name]())
    assert not lost(name, ALL[name]())
    for text, claim in claims.items():
        assert claim.null, text
        assert "[" in claim.test, text
        assert 0 <= claim.p < 0.05, text
        assert any(letter.isdigit() for letter in claim.measured), text
        assert "|" not in text + claim.measured + claim.null + claim.test, "cells of a table"


# What is changed, and words of the claims that are lost by it and of no other: on both sides of each threshold.
CHANGES = [
    ("drift", "correlation", -0.21, {"estimate": "observer"}, ["observer, γ", "no worse", "better than"], None),
    ("drift", "correlation", 0.105, {"estimate": "diffusion_maps"}, ["average of 2", "average of 5"], 2),
    ("drift", "correlation", 0.115, {"estimate": "diffusion_maps"}, ["average of"], 3),
    ("drift", "correlation", 0.06, {"estimate": "moving_average_3", "drift_rate": 0.008}, ["slowest"], 1),
    ("drift", "correlation", 0.06, {"estimate": "moving_average_3", "drift_rate": 0.024}, ["fastest"], 1),
    ("drift", "correlation", 0.06, {"estimate": "moving_average_3", "component": "azimuth"}, ["slowest", "fastest"], 2),
    ("drift", "correlation", 0.095, {"estimate": "moving_average_3", "drift_rate": 0.016}, [], 0),
    (
        "drift",
        "correlation",
        0.105,
        {"estimate": "moving_average_3", "drift_rate": 0.016, "component": "azimuth"},
        ["(azimuth)"],
        1,
    ),
    ("drift", "correlation", 0.71, {"estimate": "gamma_1", "drift_rate": 0.016}, ["γ = 1"], 1),
    ("drift", "correlation", -0.06, {"estimate": "kalman", "drift_rate": 0.016}, ["Kalman gain"], 1),
    ("drift", "correlation", -0.06, {"estimate": "smoother", "component": "azimuth"}, ["smoother"], 1),
    ("drift", "correlation", 0.06, {"estimate": "smoothed_pca", "drift_rate": 0.024}, ["smoothed PCA"], 1),
    ("drift", "correlation", 0.16, {"estimate": "tica", "drift_rate": 0.024}, ["TICA"], 1),
    ("sphere", "correlation", 0.21, {"estimate": "diffusion_maps", "component": "elevation"}, ["elevation"], 1),
    ("sphere", "single", 0.21, {"estimate": "diffusion_maps", "component": "azimuth"}, ["best coordinate"], 1),
    ("sphere", "correlation", 0.41, {"estimate": "shuffled", "component": "azimuth"}, ["random order"], 1),
    ("sphere", "boundary_ratio", -0.19, {}, [], 0),
    ("sphere", "boundary_ratio", -0.21, {}, ["than a regression shrinks"], 1),
    ("sphere", "boundary_ratio", -0.81, {}, ["regression shrinks", "larger at the boundary"], 2),
    ("extension", "correlation", 0.19, {"estimate": "nystrom", "component": "azimuth"}, ["Nyström"], 1),
    ("extension", "correlation", 0.2, {"estimate": "one-sided", "component": "azimuth"}, ["one-sided"], 1),
    ("set-up", "deviation", lambda x: 1.1 * x, {"path": 0}, [], 0),
    ("set-up", "deviation", lambda x: 1.2 * x, {"path": 0}, ["c = 0.008"], 1),
    ("set-up", "deviation", lambda x: 0.8 * x, {"path": 1, "component": 0}, ["c = 0.024"], 1),
    ("circle", "rate", lambda x: 1.14 * x, {"alpha": 0.0, "epsilon_factor": 0.16}, ["nearer to the truth than"], 1),
    (
        "circle",
        "rate",
        lambda x: 1.17 * x,
        {"alpha": 0.0, "epsilon_factor": 0.16, "mode": 3},
        ["λ_3", "smaller scale", "alpha = 0"],
        3,
    ),
    (
        "circle",
        "rate",
        lambda x: 0.83 * x,
        {"alpha": 0.0, "epsilon_factor": 1.0, "mode": 4},
        ["epsilon of the paper"],
        1,
    ),
    ("circle", "rate", lambda x: 1.12 * x, {"alpha": 0.5, "epsilon_factor": 0.16, "mode": 2}, ["alpha = 1/2, with"], 1),
    (
        "circle",
        "sensed_rate",
        lambda x: 1.2 * x,
        {"sensing": "exact, 0.3 s"},
        ["without counting", "counting) mostly", "counting) mostly"],
        None,
    ),
    ("circle", "sensed_rate", lambda x: 1.1 * x, {"sensing": "counts, 0.01 s"}, ["histograms of 60 counts"], 1),
    (
        "circle",
        "sensed_rate",
        lambda x: 2 * x,
        {"sensing": "counts, 0.3 s"},
        ["longer bursts", "dark counts, 0.2"],
        None,
    ),
    (
        "circle",
        "sensed_rate",
        lambda x: 1.3 * x,
        {"sensing": "counts, 0.3 s, dark", "mode": 1},
        ["dark counts) mostly"],
        1,
    ),
    (
        "circle",
        "sensed_rate",
        lambda x: 2 * x,
        {"sensing": "counts, 0.3 s, dark", "mode": 1},
        ["dark counts) mostly"],
        2,
    ),
    ("music", "solo_accuracy", -0.29, {"estimate": "observer"}, [], 0),
    ("music", "solo_accuracy", -0.31, {"estimate": "observer", "label": "note"}, ["notes are read better from the"], 1),
    ("music", "solo_accuracy", -0.31, {"estimate": "observer", "label": "instrument"}, ["instruments are read"], 1),
    (
        "music",
        "solo_many_accuracy",
        -0.31,
        {"pair": "observer", "label": "note"},
        ["notes are read better from six"],
        1,
    ),
    ("music", "solo_silhouette", 0.31, {"estimate": "diffusion_maps", "label": "instrument"}, ["by diffusion maps"], 1),
    ("music", "solo_silhouette", 0.31, {"estimate": "pca", "label": "note"}, ["by PCA"], 1),
    ("music", "solo_silhouette", 0.31, {"estimate": "smoothed_pca", "label": "note"}, ["by smoothed PCA"], 1),
    ("music", "solo_silhouette_null", 0.49, {}, [], 0),
    ("music", "solo_silhouette_null", 0.51, {"estimate": "observer", "label": "note"}, ["notes group together"], 1),
    ("music", "solo_pace_accuracy", 0.14, {"estimate": "observer", "pace": "rapid"}, [], 0),
    ("music", "solo_pace_accuracy", 0.21, {"estimate": "observer", "pace": "rapid"}, ["loses more"], 1),
    ("music", "solo_pace_accuracy", 0.26, {"estimate": "observer", "pace": "rapid"}, ["read worse", "loses more"], 2),
    ("music", "solo_threshold_area", -0.02, {"estimate": "observer"}, ["threshold"], 1),
    (
        "printed-sphere",
        "correlation",
        0.21,
        {"case": "π/10", "estimate": "diffusion_maps", "component": "azimuth"},
        ["π/10: observer above diffusion"],
        1,
    ),
    (
        "printed-sphere",
        "correlation",
        0.1,
        {"case": "π/10", "estimate": "moving_average_3", "component": "azimuth", "drift_rate": 0.024},
        ["π/10: observer above every"],
        1,
    ),
    ("printed-circle", "rate", lambda x: 1.17 * x, {"case": "arc 0.5", "mode": 2}, ["arc 0.5: all"], 1),
    ("printed-circle", "rate", lambda x: 0.83 * x, {"case": "the angle itself", "mode": 1}, ["angle itself"], 1),
    ("printed-circle", "rate", lambda x: 1.12 * x, {"case": "arc 1, isotropic"}, ["nearer to the truth"], 1),
    (
        "theory",
        "drift_drift_rate",
        lambda x: 1.17 * x,
        {"m": 0},
        ["ψ_1 drifts at the rate of", "ψ_1 drifts at the rate that"],
        2,
    ),
    ("theory", "drift_spectrum_rate", lambda x: 0.8 * x, {"m": 1}, ["ψ_2 drifts at the rate that"], 1),
    ("theory", "drift_curved", 0.09, {"estimate": 0}, [], 0),
    ("theory", "drift_curved", 0.12, {"estimate": 0, "m": 1}, ["ψ_2 is a line"], 1),
    ("theory", "distance_order", -0.5, {"arc": 0, "kind": 0}, [], 0),
    ("theory", "distance_order", -0.7, {"arc": 0, "kind": 0}, ["arc 0.5: the error"], 1),
    ("theory", "distance_ratio", 0.11, {"arc": 1}, ["arc 1: near pairs"], 1),
    ("theory", "distance_ratio", -0.11, {"arc": 0}, ["arc 0.5: near pairs"], 1),
    ("theory", "distance_error", 0.1, {"arc": 0}, ["bends"], 1),
    ("theory", "well_rate", lambda x: 1.17 * x, {"alpha": 0, "mode": 2}, ["α = 0"], 1),
    ("theory", "well_rate", lambda x: 0.83 * x, {"alpha": 1, "mode": 0}, ["α = 1/2"], 1),
]


@pytest.mark.parametrize(("name", "variable", "by", "where", "words", "count"), CHANGES)
def test_judge__a_change_loses_its_claims_and_no_others(name, variable, by, where, words, count):
    data = ALL[name]()
    if name in ("theory", "set-up"):  # dims without coordinates: by place
        data = data.assign_coords({dim: np.arange(data.sizes[dim]) for dim in where})
    found = lost(name, shift(data, variable, by, **where))
    for word in words:
        assert any(word in text for text in found), (word, found)
    if count is not None:
        assert len(found) == count, found


@pytest.mark.parametrize("name", ALL)
def test_judge__a_difference_that_is_mostly_chance_is_not_shown(name):
    """The same means with so much spread that no test can be sure."""
    data = ALL[name]()
    along = {"set-up": "seed", "music": "solo_realisation", "theory": "r"}.get(name, "realisation")
    for k, (key, values) in enumerate(data.data_vars.items()):
        spread = noise(*values.shape, size=10 * float(np.abs(values).max()), seed=k + 5)
        data[key] = values + (spread - spread.mean(axis=values.dims.index(along), keepdims=True))
    if name != "circle":  # logarithms of negative rates are none
        assert lost(name, data) == list(judged(name, data))


@pytest.mark.parametrize("name", ALL)
def test_judge__one_realisation_shows_nothing(name):
    along = {"set-up": "seed", "music": "solo_realisation", "theory": "r"}.get(name, "realisation")
    data = ALL[name]().isel({along: [0]})
    assert lost(name, data) == list(judged(name, data))


def test_settle__claims_survive_all_tests_of_their_experiment():
    rows = [Statement("1", str(k), "x", "y", SURE._replace(p=p)) for k, p in enumerate((0.02, 0.04, 0.9))]
    assert [claim.holds for claim in settle(rows[:1])] == [True]
    assert [claim.holds for claim in settle(rows)] == [False, False, False]
    assert settle(rows)[0].p == pytest.approx(0.06)
    assert settle([]) == []


def test_settle__a_difference_in_the_right_direction_is_not_enough():
    (claim,) = settle([Statement("1", "it works", "r 0.9", "r 0.8", UNSURE)])
    assert claim == Claim(
        "1", "it works", "r 0.9", False, null="r 0.8", test="+0.1 [-0.1, +0.3], p = 0.2", p=pytest.approx(0.2)
    )
    assert described(SURE, 1e-4) == "+0.1 [+0.05, +0.15], p = 0.0001"
