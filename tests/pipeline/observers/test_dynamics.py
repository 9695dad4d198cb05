"""What follows coordinates: a bank of poles, or learnt transitions, chosen by what is foretold of left-out frames."""

import itertools

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.observers.bank import learn_bank
from strategies import smooth_motion

pytestmark = pytest.mark.usefixtures("in_this_thread")
LEARNT, ALL = 260, 380
SEGMENT = np.repeat([0, 1, 2], [150, 150, 80])


def as_frames(values, segment=SEGMENT):
    coords = {"time": ("frame", np.arange(len(values)) * 0.5 + 40.0 * segment[: len(values)])}
    coords["segment"] = ("frame", segment[: len(values)])
    attrs = {"frame_period": 0.5, "features": "identity"}
    return xr.DataArray(values, dims=("frame", "feature"), coords=coords, attrs=attrs)


FRAMES = as_frames(smooth_motion(np.random.default_rng(3), ALL, 6))


@pytest.fixture(scope="module")
def embedding(in_this_thread):
    return mo.embed(FRAMES[:LEARNT], n_modes=3)


@pytest.fixture(scope="module")
def turning(embedding):
    return mo.observe(embedding, FRAMES, dynamics="transitions")


def test_observe__learnt_transitions_contract_and_say_so(embedding, turning):
    learnt = learn_bank(embedding, "transitions")
    transition = learnt["bank_transition"].values
    assert transition.shape == (5, 5)
    assert turning.attrs["contraction_factor"] == pytest.approx(np.linalg.norm(transition, 2))
    assert turning.attrs["contraction_factor"] <= 0.98 + 1e-9
    assert turning.attrs["dynamics"] == "transitions"
    assert "poles" not in turning.attrs
    assert learnt["transitions"].shape == (5, 5)
    assert turning["carry"].attrs["bank"] == 5
    known = np.hstack([embedding["coordinate"], embedding["principal"]])
    known = (known - known.mean(axis=0)) / known.std(axis=0)
    now = np.flatnonzero(SEGMENT[: LEARNT - 1] == SEGMENT[1:LEARNT])
    assert np.corrcoef(turning["state"].values[now, 0], known[now + 1, 0])[0, 1] > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("cuts", [[1, 2, 3], [150, 259, 261], [299, 301, 379]])
def test_observe__transitions_have_the_same_bits_in_any_calls_and_chunks(embedding, turning, cuts):
    carry, parts = None, []
    for first, stop in itertools.pairwise([0, *cuts, ALL]):
        part = mo.observe(embedding, FRAMES[first:stop], carry=carry, dynamics="transitions")
        carry = part["carry"]
        parts.append(part)
    for name in ("state", "state_std"):
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), turning[name])
    np.testing.assert_array_equal(carry, turning["carry"])
    lazily = mo.observe(embedding, FRAMES.chunk(frame=(cuts[0], ALL - cuts[0])), dynamics="transitions")
    assert lazily["state"].chunks is not None
    np.testing.assert_array_equal(lazily["state"], turning["state"])


def test_observe__the_carry_of_poles_does_not_go_on_with_transitions(embedding):
    carry = mo.observe(embedding, FRAMES[:200], dynamics="poles")["carry"]
    with pytest.raises(ValueError, match="carry must be that of an earlier result"):
        mo.observe(embedding, FRAMES[200:], carry=carry, dynamics="transitions")


def test_smooth__with_transitions_is_nearer_to_the_coordinates_than_the_filter(embedding, turning):
    both = mo.smooth(embedding, FRAMES[:LEARNT], dynamics="transitions")
    assert both.attrs["dynamics"] == "transitions"
    assert (both["state_std"].mean("frame") <= turning["state_std"][:LEARNT].mean("frame") * 1.01).all()


@pytest.mark.slow
def test_auto__takes_transitions_where_a_bank_has_too_many_weights_for_the_frames():
    """Some hundred frames of eight coordinates; and not where there are many frames."""
    rng, n = np.random.default_rng(6), 1200
    turns, hidden = 0.93 * np.exp(1j * np.array([0.2, 0.5])), np.zeros((n, 2), complex)
    for now in range(1, n):
        hidden[now] = turns * hidden[now - 1] + 0.36 * (rng.normal(size=2) + 1j * rng.normal(size=2))
    values = np.hstack([hidden.real, hidden.imag]) @ rng.normal(size=(4, 12)) + rng.normal(size=(n, 12))
    few, many = (as_frames(values[:n], np.zeros(n, int)) for n in (230, 1200))
    short, long = (learn_bank(mo.embed(frames)) for frames in (few, many))
    assert short.attrs["dynamics"] == "transitions"
    poles, transitions = short.attrs["dynamics_foretold"]
    assert transitions > poles + 0.05
    assert long.attrs["dynamics"] == "poles"
    assert "bank_transition" not in long
    assert mo.observe(short, few).attrs["dynamics_foretold"] == short.attrs["dynamics_foretold"]


def test_learn_bank__other_dynamics_are_learnt_anew_and_the_same_are_kept(embedding):
    poles = learn_bank(embedding, "poles")
    assert learn_bank(poles) is poles
    other = learn_bank(poles, "transitions")
    assert learn_bank(other) is other
    assert other.sizes["bank"] == 5
    xr.testing.assert_identical(learn_bank(other, "poles"), poles)
    older = poles.copy()
    del older.attrs["dynamics"]  # of a result from before there were others
    assert mo.observe(older, FRAMES).attrs["dynamics"] == "poles"


def test_observe__a_fit_at_its_bound_is_not_certain_and_is_not_chosen():
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.normal(size=(120, 4)), axis=0) * 0.02 + np.arange(120)[:, None]
    frames = as_frames(values, np.zeros(120, int))
    embedding = mo.embed(frames, n_modes=1)
    result = mo.observe(embedding, frames, dynamics="transitions")
    assert result.attrs["transitions_at_bound"] == 1
    assert np.isinf(result["state_std"]).all()
    assert "ended at its bound" in result["state_std"].attrs["comment"]
    assert mo.observe(embedding, frames).attrs["dynamics"] == "poles"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dynamics": "rotating"}, "dynamics must be"),
        ({"dynamics": "transitions", "reading": "lift"}, "dynamics belongs to reading='coordinates'"),
        ({"dynamics": "poles", "gain": "kalman"}, "dynamics belongs to reading='coordinates'"),
    ],
)
def test_observe__refuses_dynamics_that_do_not_go_with_the_rest(embedding, options, message):
    with pytest.raises(ValueError, match=message):
        mo.observe(embedding, FRAMES, **options)


def test_observe__transitions_of_few_frames_are_refused_and_not_taken():
    few = FRAMES[:20]
    embedding = mo.embed(few, n_modes=3)
    with pytest.raises(ValueError, match="needs five frames that follow another one for each of the 5"):
        mo.observe(embedding, few, dynamics="transitions")
    assert mo.observe(embedding, few).attrs["dynamics"] == "poles"
