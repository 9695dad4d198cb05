"""New frames have the features of the embedded ones, by name; otherwise one sentence says what differs."""

import itertools

import numpy as np
import pytest
import xarray as xr

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.frames.alike import aligned, meaning_of, with_channels
from manifold_observer.pipeline.frames.join import concat
from strategies import share, smooth_motion

NAMES = ["C3", "C4", "Cz", "Pz"]
RATE = 100.0
FEATURES = {
    "identity": mo.identity,
    "log_rms": lambda recording: mo.log_rms(recording, frame=10),
    "stft": lambda recording: mo.stft(recording, frame="200ms"),
    "histogram": lambda recording: mo.histogram(recording, frame=20, edges=np.linspace(-9, 9, 6), outside="clip"),
}
SWAPPED = [2, 0, 3, 1]
each_kind = pytest.mark.parametrize("kind", FEATURES)
pytestmark = pytest.mark.filterwarnings("ignore:extend")


def recording(n=4000, names=NAMES, rate=RATE, seed=0, units="uV"):
    values = smooth_motion(np.random.default_rng(seed), n, len(names), noise=0.5)
    time = ("time", np.arange(n) / rate, {"units": "s"})
    return xr.DataArray(
        values, dims=("time", "channel"), coords={"time": time, "channel": list(names)}, attrs={"units": units}
    ).chunk(time=700)


@pytest.fixture(scope="module")
def embedded():
    made = {}

    def get(kind):
        if kind not in made:
            frames = FEATURES[kind](recording())[:180]
            made[kind] = mo.embed(frames, n_modes=2)
        return made[kind]

    return get


WAYS = {
    "observe": lambda e, f: mo.observe(e, f)["state"],
    "smooth": lambda e, f: mo.smooth(e, f)["state"],
    "extend": lambda e, f: mo.extend(e, f)["coordinate"],
    "innovations": lambda e, f: mo.innovations(e, f, mo.observe(e, f))["innovation"],
}
each_way = pytest.mark.parametrize("way", WAYS)


@pytest.mark.slow
@pytest.mark.parametrize(("way", "kind"), share(itertools.product(WAYS, FEATURES), 3))
def test_channels_in_another_order_give_the_same(embedded, kind, way):
    e, new = embedded(kind), recording(seed=1)
    expected = WAYS[way](e, FEATURES[kind](new)[:50])
    found = WAYS[way](e, FEATURES[kind](new[:, SWAPPED])[:50])
    np.testing.assert_array_equal(found, expected)


@each_kind
def test_join__aligns_channels(kind):
    first, other = recording(), recording(seed=1)
    expected = concat([FEATURES[kind](first), FEATURES[kind](other)])
    found = concat([FEATURES[kind](first), FEATURES[kind](other[:, SWAPPED])])
    np.testing.assert_array_equal(found, expected)
    assert found["channel"].values.tolist() == expected["channel"].values.tolist()


DIFFERENCES = [
    (
        "identity",
        lambda: mo.identity(recording(names=["C3", "C4", "Cz", "Oz"])),
        "channels.*'Pz' missing and 'Oz' added",
    ),
    ("identity", lambda: mo.identity(recording(names=[*NAMES, "Oz"])), "channels.*'Oz' added"),
    ("identity", lambda: mo.identity(recording(rate=2 * RATE)), r"frame period .*0\.01 s; got 0\.005 s"),
    ("identity", lambda: mo.identity(recording(units="mV")), "unit of the embedding, 'uV'; got 'mV'. Convert"),
    ("log_rms", lambda: mo.identity(recording()), "kind of the embedding, 'log_rms'; got 'identity'"),
    ("log_rms", lambda: mo.log_rms(recording(), frame=12, hop=10), r"frame duration .*0\.1 s; got 0\.12 s"),
    ("log_rms", lambda: mo.log_rms(recording(), frame=10, hop=5), r"frame period .*0\.1 s; got 0\.05 s"),
    ("stft", lambda: mo.stft(recording(), frame=20, window="boxcar"), "STFT window .*'hann'; got 'boxcar'"),
    (
        "stft",
        lambda: mo.stft(recording(rate=50.0), frame=20),
        r"frequencies .*0 \.\. 50 \(11\) Hz; got 0 \.\. 25 \(11\) Hz",
    ),
    ("stft", lambda: mo.stft(recording(), frame=22), "44 features of the embedding; got 48"),
    (
        "histogram",
        lambda: mo.histogram(recording(), frame=20, edges=np.linspace(-8, 8, 6), outside="clip"),
        r"bins of the embedding, -9 \.\. .*; got -8 \.\. .*edges=",
    ),
]


@each_way
@pytest.mark.parametrize(("kind", "make", "message"), DIFFERENCES)
def test_other_features_are_refused_by_what_differs(embedded, way, kind, make, message):
    with pytest.raises(ValueError, match=message):
        WAYS[way](embedded(kind), make()[:50])


@pytest.mark.parametrize(("kind", "make", "message"), DIFFERENCES)
def test_join__names_what_differs(kind, make, message):
    with pytest.raises(
        ValueError, match=f"the frames of recording 2 must have the .*{message.replace('the embedding', 'the first')}"
    ):
        concat([FEATURES[kind](recording()), make()])


def test_frames_without_names_are_taken_in_order_with_a_warning(embedded):
    e, frames = embedded("identity"), mo.identity(recording(seed=1))[:50]
    with pytest.warns(UserWarning, match="no channel names; they are taken in the order of the embedding's"):
        found = mo.observe(e, frames.drop_vars("channel"))
    np.testing.assert_array_equal(found["state"], mo.observe(e, frames)["state"])


def test_names_that_are_padded_are_the_same():
    known = meaning_of(mo.identity(recording()))
    padded = mo.identity(recording(names=["C4 ", " C3", "Cz", "Pz  "]))
    np.testing.assert_array_equal(aligned("x", known, padded), padded[:, [1, 0, 2, 3]])


def test_names_that_repeat_keep_their_order():
    twice = mo.identity(recording(names=["C3", "C3", "Cz", "Pz"]))
    known = meaning_of(twice)
    np.testing.assert_array_equal(aligned("x", known, twice[:, [2, 0, 3, 1]]), twice)


def test_with_channels__orders_or_refuses():
    one = recording(n=10)
    np.testing.assert_array_equal(with_channels("continue: a", one[:, SWAPPED], NAMES), one)
    with pytest.raises(
        ValueError, match="continue: a must have the channels of the result, 'C3', 'C4', 'Cz', 'Pz'; got 'C3'"
    ):
        with_channels("continue: a", one[:, :1], NAMES)
    twice = recording(n=10, names=["C3", "C3", "Cz", "Pz"])
    with pytest.raises(ValueError, match="must have the channels"):
        with_channels("continue: a", twice, NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["log_rms", "histogram", "identity", "stft"])
def test_another_unit_is_refused_and_another_spelling_is_not(embedded, kind):
    e = embedded(kind)
    with pytest.raises(ValueError, match="must have the unit of the embedding, 'uV'; got 'mV'"):
        mo.observe(e, FEATURES[kind](recording(seed=1, units="mV"))[:50])
    expected = mo.observe(e, FEATURES[kind](recording(seed=1))[:50])["state"]
    for units in ("µV", "microvolts", "unknown"):
        found = mo.observe(e, FEATURES[kind](recording(seed=1, units=units))[:50])["state"]
        np.testing.assert_array_equal(found, expected)


def test_names_of_channels_as_padded_bytes_are_words():
    named = recording().assign_coords(channel=np.array([name.encode().ljust(6) for name in NAMES]))
    assert mo.log_rms(named, frame=10)["channel"].values.tolist() == NAMES
