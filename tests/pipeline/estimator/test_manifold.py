"""The estimator is the two functions behind the interface of scikit-learn, and what that promises holds."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
import xarray as xr
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import manifold_observer.pipeline as mo
from manifold_observer.pipeline.estimator.manifold import EXPECTED_FAILED_CHECKS
from strategies import seldom, smooth_motion

X = smooth_motion(np.random.default_rng(0), 300, 4)
TRAIN, TEST = X[:200], X[200:]


def frames_of(values, **coords):
    return xr.DataArray(values, dims=("frame", "feature"), coords={k: ("frame", v) for k, v in coords.items()})


@pytest.fixture(scope="module")
def fitted():
    return mo.ManifoldObserver(n_modes=2).fit(TRAIN)


@seldom
@pytest.mark.filterwarnings("ignore")
def test_estimator__passes_all_checks_of_scikit_learn_but_those_about_single_rows():
    found = check_estimator(mo.ManifoldObserver(), expected_failed_checks=EXPECTED_FAILED_CHECKS, on_fail=None)
    by_status = {}
    for one in found:
        by_status.setdefault(one["status"], set()).add(one["check_name"])
    assert "failed" not in by_status
    # One that passes has no place in the list.
    assert by_status["xfail"] == set(EXPECTED_FAILED_CHECKS)
    assert len(by_status["passed"]) > 35


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_estimator__transform_of_the_rows_of_the_fit_is_observe_after_embed(fitted):
    expected = mo.observe(mo.embed(frames_of(TRAIN), 2), frames_of(TRAIN)).state.values
    np.testing.assert_array_equal(fitted.transform(TRAIN), expected)
    np.testing.assert_array_equal(mo.ManifoldObserver(n_modes=2).fit_transform(TRAIN), expected)


@pytest.mark.slow
def test_estimator__new_rows_are_read_apart_or_go_on(fitted):
    embedding = mo.embed(frames_of(TRAIN), 2)
    first = mo.observe(embedding, frames_of(TRAIN))
    np.testing.assert_array_equal(fitted.transform(TEST), mo.observe(embedding, frames_of(TEST)).state.values)
    following = mo.ManifoldObserver(n_modes=2, new_frames="continue").fit(TRAIN)
    expected = mo.observe(embedding, frames_of(TEST), carry=first.carry).state.values
    np.testing.assert_array_equal(following.transform(TEST), expected)
    assert not np.array_equal(expected, fitted.transform(TEST))
    # No call changes what another one gives.
    np.testing.assert_array_equal(following.transform(TEST), expected)
    np.testing.assert_array_equal(following.transform(TRAIN), first.state.values)


@pytest.mark.slow
def test_estimator__segments_come_as_rows_or_with_labelled_frames():
    segment = np.repeat([0, 1], 100)
    by_keyword = mo.ManifoldObserver(n_modes=2).fit(TRAIN, segment=segment)
    by_label = mo.ManifoldObserver(n_modes=2).fit(frames_of(TRAIN, segment=segment, time=np.arange(200.0)))
    np.testing.assert_array_equal(by_keyword.embedding_.coordinate, by_label.embedding_.coordinate)
    assert not np.allclose(
        by_keyword.embedding_.coordinate, mo.ManifoldObserver(n_modes=2).fit(TRAIN).embedding_.coordinate
    )
    with pytest.raises(ValueError, match=r"segment must hold a number for each of 200 rows; got shape \(3,\)"):
        mo.ManifoldObserver(n_modes=2).fit(TRAIN, segment=[0, 1, 2])


@pytest.mark.slow
def test_estimator__clones_pickles_and_names_its_columns(fitted):
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    assert not hasattr(copied, "embedding_")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(TEST), fitted.transform(TEST))
    names = list(fitted.get_feature_names_out())
    assert names[:2] == ["coordinate1", "coordinate2"]
    table = clone(fitted).set_output(transform="pandas").fit(pd.DataFrame(TRAIN, columns=list("abcd")))
    found = table.transform(pd.DataFrame(TEST, columns=list("abcd")))
    assert list(found.columns) == names
    with pytest.raises(ValueError, match="feature names"):
        table.transform(pd.DataFrame(TEST, columns=list("abdc")))


def test_estimator__states_stand_for_features_again(fitted):
    found = fitted.inverse_transform(fitted.transform(TRAIN))
    assert np.corrcoef(found[:, 0], TRAIN[:, 0])[0, 1] > 0.9


def test_estimator__score_falls_as_less_can_be_foretold(fitted):
    order = np.random.default_rng(1).permutation(100)
    assert fitted.score(TRAIN) > 0.5
    assert fitted.score(TEST) > fitted.score(TEST[order])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_estimator__is_chosen_by_cross_validation_without_and_with_labels():
    search = GridSearchCV(
        mo.ManifoldObserver(n_modes=2, new_frames="continue"), {"window": [5, 21]}, cv=TimeSeriesSplit(2)
    ).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    hidden = np.sin(np.arange(300) / 12)
    pipeline = make_pipeline(StandardScaler(), mo.ManifoldObserver(), Ridge())
    chosen = GridSearchCV(pipeline, {"manifoldobserver__n_modes": [1, 2]}, cv=TimeSeriesSplit(2)).fit(X, hidden)
    assert chosen.best_estimator_.predict(TEST).shape == (100,)


def test_estimator__segments_travel_through_a_pipeline():
    with sklearn.config_context(enable_metadata_routing=True):
        observer = mo.ManifoldObserver(n_modes=2).set_fit_request(segment=True).set_transform_request(segment=True)
        segment = np.repeat([0, 1], 100)
        found = make_pipeline(StandardScaler(), observer).fit(TRAIN, segment=segment)
        plain = mo.ManifoldObserver(n_modes=2).fit(StandardScaler().fit_transform(TRAIN), segment=segment)
        np.testing.assert_array_equal(found[-1].embedding_.coordinate, plain.embedding_.coordinate)


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.zeros((10, 2)), "equal"),
        (np.full((50, 2), np.nan), "NaN"),
        ([1.0, 2.0, 3.0], "2D array"),
        (np.ones((50, 2), object) * "a", "convert string"),
    ],
)
def test_estimator__refuses_what_is_no_frames(X, match):
    with pytest.raises(ValueError, match=match):
        mo.ManifoldObserver().fit(X)


def test_estimator__refuses_an_unknown_way_to_read_new_frames():
    with pytest.raises(ValueError, match="new_frames must be 'apart' or 'continue'; got 'on'"):
        mo.ManifoldObserver(new_frames="on").fit(TRAIN)


@pytest.mark.slow
def test_estimator__scikit_learn_is_imported_with_it_alone():
    program = (
        "import sys, manifold_observer.pipeline as mo; mo.embed; mo.run; assert 'sklearn' not in sys.modules; "
        "sys.modules['sklearn'] = None\n"
        "try: mo.ManifoldObserver\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Install it with: pip install scikit-learn" in done.stdout
