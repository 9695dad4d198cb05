"""Bands of states that are read from coordinates hold what they say: simulated states, seen through noisy features."""

import itertools
import warnings

import numpy as np
import pytest
import xarray as xr
from scipy.signal import lfilter

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.embedding import references
from manifold_observer.pipeline.engine.blocks import slab_of
from manifold_observer.pipeline.observers import certainty
from manifold_observer.pipeline.observers.bank import learn_bank
from manifold_observer.pipeline.observers.certainty import learn_certainty
from strategies import share

pytestmark = pytest.mark.usefixtures("in_this_thread")
P = 8
MIX = np.random.default_rng(99).normal(size=(2, P))
PHASE = np.random.default_rng(98).uniform(0, 6, P)


def hidden(rng, lengths, rates):
    """Ornstein-Uhlenbeck processes of variance 1, one segment after the other."""
    poles, parts = np.exp(-np.array(rates)), []
    for n in lengths:
        steps = rng.normal(size=(n, len(poles))) * np.sqrt(1 - poles**2)
        steps[0] = rng.normal(size=len(poles))
        parts.append(np.stack([lfilter([1.0], [1.0, -a], x) for a, x in zip(poles, steps.T, strict=True)], axis=1))
    return np.concatenate(parts)


def seen(rng, truth, lengths, noise, curved, start=0.0):
    clean = 1.5 * np.sin(0.7 * truth @ MIX[: truth.shape[1]] + PHASE) if curved else truth @ MIX[: truth.shape[1]]
    segment = np.repeat(np.arange(len(lengths)), lengths)
    time = start + np.arange(len(truth)) + 100.0 * segment
    return xr.DataArray(
        clean + noise * rng.normal(size=clean.shape),
        dims=("frame", "feature"),
        coords={"time": ("frame", time), "segment": ("frame", segment)},
        attrs={"frame_period": 1.0, "features": "identity"},
    )


def without_noise(truth):
    """Smooth functions of the hidden state."""
    degree = 10 if truth.shape[1] == 1 else 6
    powers = [np.polynomial.chebyshev.chebvander(column / 3, degree) for column in truth.T]
    if len(powers) == 1:
        return powers[0]
    pairs = [(j, k) for j in range(degree + 1) for k in range(degree + 1 - j)]
    return np.stack([powers[0][:, j] * powers[1][:, k] for j, k in pairs], axis=1)


SETTINGS = {
    "a slow state": ([2000], [20] * 40, [0.05], 0.5, False),
    "two states in much noise": ([2000], [50] * 20, [0.03, 0.1], 1.0, False),
    "a fast state": ([2000], [20] * 40, [0.3], 1.0, False),
    "a curved map": ([2000], [60] * 20, [0.02, 0.06], 0.5, True),
    "short segments": ([12] * 150, [12] * 60, [0.1, 0.2], 0.5, False),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", share(SETTINGS, 3))
def test_state_std__bands_hold_in_the_sample_and_out_of_it_and_where_segments_begin(name):
    """Of the coordinate that belongs to the hidden state; coordinates that are noise have wider ones."""
    lengths, others, rates, noise, curved = SETTINGS[name]
    held = {}
    for seed in range(2):
        rng = np.random.default_rng(seed)
        known, new = hidden(rng, lengths, rates), hidden(rng, others, rates)
        frames, later = seen(rng, known, lengths, noise, curved), seen(rng, new, others, noise, curved, 1e6)
        embedding = learn_certainty(learn_bank(mo.embed(frames)), new=True)  # once, not in every call
        plain = np.hstack([embedding["coordinate"].values, embedding["principal"].values])
        plain = (plain - embedding["reading_mean"].values) / embedding["reading_deviation"].values
        weights = np.linalg.lstsq(without_noise(known), plain, rcond=None)[0]
        told = (without_noise(known) @ weights).var(axis=0) > 0.3
        for where, truth, some, cut in (("in", known, frames, lengths), ("out", new, later, others)):
            inner = (np.abs(truth) < 2).all(axis=1)  # what a map is beyond, few frames have shown
            first = np.concatenate([np.arange(n) for n in cut]) < 3
            for way in (mo.observe, mo.smooth):
                result = way(embedding, some)
                off = np.abs(result["state"].values - without_noise(truth) @ weights)
                inside = off < 1.96 * result["state_std"].values
                held.setdefault((where, "all"), []).append(inside[inner][:, told].mean())
                held.setdefault((where, "dead"), []).append(inside[inner][:, ~told].mean() if (~told).any() else 1.0)
                if len(cut) > 1:
                    held.setdefault((where, "first"), []).append(inside[inner & first][:, told].mean())
    for (_, which), shares in held.items():
        assert np.mean(shares) > 0.925
        assert which == "dead" or np.mean(shares) < 0.985


@pytest.fixture(scope="module")
def recording(in_this_thread):
    rng = np.random.default_rng(5)
    lengths = [200, 60, 140, 90]
    return seen(rng, hidden(rng, lengths, [0.05, 0.1]), lengths, 0.5, False)


@pytest.fixture(scope="module")
def embedding(recording, in_this_thread):
    return mo.embed(recording[:400], n_modes=3)


def test_state_std__is_largest_where_segments_begin_and_of_new_frames(embedding, recording):
    result, both = mo.observe(embedding, recording), mo.smooth(embedding, recording)
    std = result["state_std"].values[:, 0]
    assert std[0] == std[200] > 1.1 * std[100]
    assert std[450] >= std[100]
    assert result["state_std"].attrs["long_name"]
    assert (both["state_std"][20:180] / result["state_std"][20:180]).mean() < 1.02
    assert both["state_std"][199, 1] > both["state_std"][100, 1]


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [[1, 2, 3], [150, 201, 259], [399, 401, 430]])
def test_state_std__has_the_same_bits_in_any_calls_and_chunks(embedding, recording, cuts):
    embedding = learn_certainty(learn_bank(embedding), new=True)  # once, not in every call
    whole = mo.observe(embedding, recording)
    carry, parts = None, []
    for first, stop in itertools.pairwise([0, *cuts, len(recording)]):
        part = mo.observe(embedding, recording[first:stop], carry=carry)
        carry = part["carry"]
        parts.append(part["state_std"].values)
    np.testing.assert_array_equal(np.concatenate(parts), whole["state_std"])
    lazily = mo.observe(embedding, recording.chunk(frame=(cuts[0], cuts[1] - cuts[0], len(recording) - cuts[1])))
    assert lazily["state_std"].chunks is not None
    np.testing.assert_array_equal(lazily["state_std"], whole["state_std"])


def test_state_std__of_frames_far_from_all_others_is_infinite(embedding, recording):
    moved = (recording + 50.0).assign_coords(time=recording["time"] + 1e5)
    with pytest.warns(UserWarning, match="far from all embedded ones"):
        assert np.isinf(mo.observe(embedding, moved)["state_std"]).all()


def test_state_std__of_a_recording_too_short_to_tell_is_infinite(recording):
    few = recording[:40]
    result = mo.observe(mo.embed(few, n_modes=2), few)
    assert np.isinf(result["state_std"]).all()
    assert "too few embedded frames" in result["state_std"].attrs["comment"]
    assert np.isfinite(result["state"]).all()


def test_learn_certainty__keeps_what_the_embedding_brings(embedding, recording):
    learnt = learn_certainty(learn_bank(embedding), new=True)
    assert (learnt["new_error"] >= 1).all()
    assert learn_certainty(learnt, new=True) is learnt
    changed = learnt.assign(state_error=4 * learnt["state_error"])
    one, other = (mo.observe(x, recording)["state_std"].values for x in (learnt, changed))
    np.testing.assert_allclose(other, 2 * one)


def test_learn_certainty__long_recordings_are_learnt_from_runs_of_them(embedding, recording, monkeypatch):
    plain = learn_bank(embedding)
    whole = learn_certainty(plain, new=True)
    for name, value in (("_LEARNT", 300), ("_READ_AGAIN", 200), ("_REFERENCES", 250)):
        monkeypatch.setattr(certainty, name, value)
    some = learn_certainty(plain, new=True)
    assert not some["state_error"].equals(whole["state_error"])
    ratio = some["state_error"][-1] / whole["state_error"][-1]
    assert ((ratio > 0.3) & (ratio < 3)).all()


def test_learn_certainty__references_are_gathered_and_measured_once(embedding, monkeypatch):
    plain, made = learn_bank(embedding), []
    for name, value in (("_READ_AGAIN", 200), ("_REFERENCES", 250)):
        monkeypatch.setattr(certainty, name, value)
    monkeypatch.setattr(references, "slab_of", lambda *taken: (made.append(taken), slab_of(*taken))[1])
    monkeypatch.setattr(references, "check_moments", None)  # a pass over frames that nobody asks for
    learn_certainty(plain, new=True)
    assert len(made) == 1


def test_learn_certainty__references_that_are_damaged_are_refused(embedding, monkeypatch):
    monkeypatch.setattr(certainty, "_REFERENCES", 250)
    damaged = learn_bank(embedding).copy(deep=True)
    damaged["reference"][100:110] = np.nan
    with pytest.raises(ValueError, match=r"^embed: embedded frames must be finite; some of frames 0 \.\. 399 hold NaN"):
        learn_certainty(damaged, new=True)


@pytest.mark.slow
def test_observe__of_an_embedding_that_brings_its_certainty_needs_no_references(embedding, recording):
    learnt = learn_certainty(learn_bank(embedding), new=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = mo.observe(learnt, recording)
    xr.testing.assert_equal(again, mo.observe(embedding, recording))
