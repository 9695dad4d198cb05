"""The reference against numbers worked out by hand, so that the rest may be tested against the reference."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from reference import dense, loops

LN2 = np.log(2)


# ---------------------------------------------------------------------------------------------- features


def test_histogram__counts_by_hand():
    samples = [[0, 1], [1, 1], [2, 0], [0, 2], [9, 9]]  # the fifth row is an incomplete frame
    # cells [0, 1) and [1, 2]; frame 0: {0, 1} and {1, 1}; frame 1: {2, 0} (2 in the closed cell) and {0, 2}
    assert_allclose(loops.histogram(samples, 2, [0, 1, 2]), [[0.5, 0.5, 0, 1], [0.5, 0.5, 0.5, 0.5]])


def test_stft__hann_of_four():
    # h = 0, ½, 1, ½. Ones: |Σ h| = 2, |−½i − 1 + ½i| = 1, |−½ + 1 − ½| = 0. An impulse at n = 1: all ½.
    samples = np.array([[1, 0], [1, 1], [1, 0], [1, 0], [1, 0], [1, 0]])
    assert_allclose(loops.stft(samples, 4), [[2, 1, 0, 0.5, 0.5, 0.5]], atol=1e-15)
    # with hop 2 the second frame holds samples 2 … 5, where the second channel is silent
    both = loops.stft(samples, 4, hop=2)
    assert_allclose(both, [[2, 1, 0, 0.5, 0.5, 0.5], [2, 1, 0, 0, 0, 0]], atol=1e-15)
    assert loops.stft(samples, 7).shape == (0, 8)


def test_log_rms__by_hand():
    # (1 + 49) / 2 = 25 and (4 + 4) / 2 = 4
    assert_allclose(loops.log_rms([[1, 2], [7, -2]], 2), [[np.log(5), np.log(2)]])


# ------------------------------------------------------------------------------------ local covariances


def test_windows__shift_inwards_at_edges_and_at_a_gap():
    segment = [0, 0, 0, 0, 0, 1, 1, 1]
    left, middle, right, after = [0, 1, 2], [1, 2, 3], [2, 3, 4], [5, 6, 7]
    assert dense.windows(segment, 3) == [left, left, middle, right, right, after, after, after]


def test_windows__even_and_longer_than_a_segment():
    # start = i − 2 within 0 … 1 for the five frames; the three frames after the gap are all there is
    expected = [[0, 1, 2, 3]] * 3 + [[1, 2, 3, 4]] * 2 + [[5, 6, 7]] * 3
    assert dense.windows([4, 4, 4, 4, 4, 7, 7, 7], 4) == expected


def test_window_covariances__by_hand():
    # deviations from (1, 2): (−1, −2), (0, 0), (1, 2); products summed [[2, 4], [4, 8]], divided by 3 − 1
    covariances = dense.window_covariances([[0, 0], [1, 2], [2, 4]], [0, 0, 0], 3)
    assert_allclose(covariances, [[[1, 2], [2, 4]]] * 3)
    assert_allclose(dense.window_covariances([[0], [1], [2]], [0, 0, 0], 3), [[[1]]] * 3)


def test_pseudo_inverse__rank_and_tolerance():
    c = np.diag([4.0, 1.0, 0.0])
    assert_allclose(dense.pseudo_inverse(c), np.diag([0.25, 1, 0]))
    assert_allclose(dense.pseudo_inverse(c, rank=1), np.diag([0.25, 0, 0]))
    assert_allclose(dense.pseudo_inverse(c, tolerance=0.3), np.diag([0.25, 0, 0]))  # 1 < 0.3 * 4
    assert_allclose(dense.pseudo_inverse(np.zeros((2, 2))), np.zeros((2, 2)))


def test_pseudo_inverse__oblique():
    # [[1, 2], [2, 4]] = 5 v vᵀ with v = (1, 2) / √5, so the inverse is v vᵀ / 5
    assert_allclose(dense.pseudo_inverse([[1, 2], [2, 4]]), np.array([[1, 2], [2, 4]]) / 25)


# ---------------------------------------------------------------------------------- distance and kernel


def test_distances__two_points_one_unit_apart():
    z, one = [[0, 0], [1, 0]], np.eye(2)
    assert_allclose(dense.distances(z, [one, one]), [[0, 1], [1, 0]])
    assert_allclose(dense.distances(z, [one, 4 * one]), [[0, 2.5], [2.5, 0]])  # ½ (1 + 4)


def test_distances__with_cross_terms():
    # (1, 1) [[2, 1], [1, 2]] (1, 1)ᵀ = 6 and (1, 1) I (1, 1)ᵀ = 2
    d = dense.distances([[0, 0], [1, 1]], [[[2, 1], [1, 2]], np.eye(2)])
    assert_allclose(d, [[0, 4], [4, 0]])


def test_scales__by_hand():
    d = np.array([[0.0, 1, 2], [1, 0, 6], [2, 6, 0]])
    assert dense.epsilon_median(d) == 2
    assert dense.epsilon_median(d, factor=3) == 6
    assert_allclose(dense.local_scales(d, 1), [1, 1, 2])
    assert_allclose(dense.local_scales(d, 2), [2, 6, 6])


def test_kernels__by_hand():
    d = np.array([[0, 2 * LN2], [2 * LN2, 0]])
    assert_allclose(dense.kernel(d, 2), [[1, 0.5], [0.5, 1]])
    assert_allclose(dense.kernel_local(d, [1, 4]), [[1, 0.5], [0.5, 1]])  # √(1 · 4) = 2


# ------------------------------------------------------------------------------------------- eigenpairs


def test_eigenpairs__two_frames():
    # W = [[2/3, 1/3], [1/2, 1/2]], μ_1 = trace − 1 = 1/6, (W − 1/6) (−2, 3)ᵀ = 0, mean square (4 + 9) / 2
    mu, psi = dense.eigenpairs([[2, 1], [1, 1]], 0, 1)
    assert_allclose(mu, [1, 1 / 6])
    assert_allclose(psi, np.array([[-2], [3]]) / np.sqrt(6.5))


def test_eigenpairs__two_frames_without_their_density():
    # q = 3, 2; K/(q q) = [[2/9, 1/6], [1/6, 1/4]]; W = [[4/7, 3/7], [2/5, 3/5]]; μ_1 = 4/7 + 3/5 − 1 = 6/35;
    # (W − 6/35) (15, −14)ᵀ = 0, mean square (225 + 196) / 2
    mu, psi = dense.eigenpairs([[2, 1], [1, 1]], 1, 1)
    assert_allclose(mu, [1, 6 / 35])
    assert_allclose(psi, np.array([[15], [-14]]) / np.sqrt(210.5))


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
def test_nystrom__known_frames_return_themselves(alpha):
    z = np.array([0.0, 0.3, 1.0, 1.2, 2.5])
    k = dense.kernel((z[:, None] - z) ** 2, 1)
    mu, psi = dense.eigenpairs(k, alpha, 3)
    assert_allclose(dense.nystrom(k, k, alpha, psi, mu[1:4]), psi)


def test_nystrom__new_frame():
    # W = 1/4, 3/4: (−2 / 4 + 9 / 4) / √6.5, divided by 1/6; with a = 1, q = 3, 2: (1/3, 3/2) → W = 2/11, 9/11
    k = [[2, 1], [1, 1]]
    psi = np.array([[-2], [3]]) / np.sqrt(6.5)
    assert_allclose(dense.nystrom([[1, 3]], k, 0, psi, [1 / 6]), [[10.5 / np.sqrt(6.5)]])
    psi = np.array([[15], [-14]]) / np.sqrt(210.5)
    expected = (30 - 126) / 11 * 35 / 6 / np.sqrt(210.5)
    assert_allclose(dense.nystrom([[1, 3]], k, 1, psi, [6 / 35]), [[expected]])


def test_distances_to_known__are_those_of_frames_together():
    z, precisions = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]]), np.array([np.eye(2), np.diag([4, 1]), np.eye(2)])
    d = dense.distances(z, precisions)
    assert_allclose(dense.distances_to_known(z[:1], precisions[:1], z, precisions), d[:1])
    assert_allclose(dense.one_sided_distances(z[:1], z, precisions), [[0, 4, 5]])
    assert_allclose(dense.scales_of_new(d[:1], 2, 3.0), [7.5])


def test_one_sided__new_frame():
    psi, q = np.array([[2.0], [-1.0]]), np.array([1.0, 4.0])
    a2 = np.array([[0.0, 0.5 * np.log(2)]])  # affinities 1 and 1/2
    assert_allclose(dense.one_sided(a2, q, 0, psi, [0.25]), [[2.0]])
    assert_allclose(dense.one_sided(a2, q, 0.5, psi, [0.25]), [[2 * (2 - 0.25) / 1.25]])


def test_spectral_gap__by_hand():
    assert dense.spectral_gap([0.9, 0.8, 0.3, 0.2]) == 2
    assert dense.spectral_gap([0.9, 0.8, -0.5]) == 1  # the gap down to a negative value does not count


# --------------------------------------------------------------------------------------------- observer


def test_lift__by_hand():
    # deviations (−2, 0, 2) and (−1, −1, 2): (−2 + 0 + 4) / 3 and (−1 + 1 + 4) / 3
    assert_allclose(dense.lift([[0, 1], [2, 1], [4, 4]], np.array([[1], [-1], [2]])), [[2 / 3], [4 / 3]])


Z, SEGMENT, MEAN, ALPHA = np.array([[12.0], [14.0], [16.0]]), [0, 0, 1], [10.0], [[2.0]]  # u = 1, 2, 3


def test_observer__exact_from_steady_state_and_after_a_gap():
    # γ = ½: γ/(1−γ) = 1, a = exp(−½ log 4) = ½; −1, then ½ (−1) − ½ · 2 = −1.5, after the gap −3
    states, last = dense.observer(Z, SEGMENT, MEAN, ALPHA, [2 * LN2], 0.5)
    assert_allclose(states, [[-1], [-1.5], [-3]])
    assert_allclose(last, [-3])


def test_observer__euler_and_its_substeps():
    # λ = 1: x − ½ x − ½ u = ½ (−1) − ½ · 2; in halves x − ¼ x − ¼ u: −1 → −1.25 → −1.4375
    states, _ = dense.observer(Z, SEGMENT, MEAN, ALPHA, [1], 0.5, step="euler")
    assert_allclose(states, [[-1], [-1.5], [-3]])
    states, _ = dense.observer(Z, SEGMENT, MEAN, ALPHA, [1], 0.5, step="euler", substeps=2)
    assert_allclose(states, [[-1], [-1.4375], [-3]])


def test_observer__paper_start():
    # ½ · 4 − ½ · 1 = 1.5, ½ · 1.5 − ½ · 2 = −0.25, after the gap ½ · 8 − ½ · 3 = 2.5
    psi = np.array([[4], [6], [8]])
    states, _ = dense.observer(Z, SEGMENT, MEAN, ALPHA, [2 * LN2], 0.5, initial="paper", psi=psi)
    assert_allclose(states, [[1.5], [-0.25], [2.5]])


@pytest.mark.parametrize("initial", ["steady", "paper"])
def test_observer__carry_continues_the_first_frame_only(initial):
    # from 4 as above; the gap still restarts: −3, or with ψ = 8 2.5
    psi, after = np.array([[0], [0], [8]]), {"steady": -3, "paper": 2.5}[initial]
    states, _ = dense.observer(Z, SEGMENT, MEAN, ALPHA, [2 * LN2], 0.5, initial=initial, psi=psi, carry=np.array([4.0]))
    assert_allclose(states, [[1.5], [-0.25], [after]])


def test_observer__without_gain_only_decays():
    # γ = 0: exp(−log 2) = ½ and exp(−log 4) = ¼ a frame, whatever is measured
    z, alpha = np.array([[5.0, 1, 7], [-3, 2, 0]]), [[1, 0], [0, 2], [0, 0]]
    psi = np.array([[8.0, 16.0], [0, 0]])
    states, _ = dense.observer(z, [0, 0], np.zeros(3), alpha, [LN2, 2 * LN2], 0, initial="paper", psi=psi)
    assert_allclose(states, [[4, 4], [2, 1]])


def test_observer__two_modes_of_three_features():
    # α† = [[1, 0, 0], [0, ½, 0]]: u = (5, ½), and γ = 3/4 has the steady state −3 u
    states, _ = dense.observer([[5, 1, 7]], [0], np.zeros(3), [[1, 0], [0, 2], [0, 0]], [LN2, 1], 0.75)
    assert_allclose(states, [[-15, -1.5]])


def test_observer__in_two_parts_by_carry():
    rng = np.random.default_rng(0)
    z, alpha, segment = rng.normal(size=(7, 3)), rng.normal(size=(3, 2)), [0, 0, 0, 0, 0, 1, 1]
    options = (np.zeros(3), alpha, [0.3, 0.9], 0.6)
    whole, last = dense.observer(z, segment, *options)
    first, carry = dense.observer(z[:3], segment[:3], *options)
    second, end = dense.observer(z[3:], segment[3:], *options, carry=carry)
    assert_allclose(np.vstack([first, second]), whole)
    assert_allclose(end, last)


def test_telescoped__by_hand():
    # A = ½, B = −½: ¼ · 4 + ½ (−½) · 1 + (−½) · 2 = −0.25
    assert_allclose(dense.telescoped(Z, MEAN, ALPHA, [1], 0.5, [4], 2), [-0.25])
    assert_allclose(dense.telescoped(Z, MEAN, ALPHA, [1], 0.5, [4], 0), [4])


def test_telescoped__is_the_euler_recursion():
    rng = np.random.default_rng(1)
    z, alpha, x0 = rng.normal(size=(6, 3)), rng.normal(size=(3, 2)), rng.normal(size=2)
    options = (z.mean(axis=0), alpha, [0.3, 0.9], 0.6)
    states, _ = dense.observer(z, [0] * 6, *options, step="euler", carry=x0)
    for n in range(1, 7):
        assert_allclose(dense.telescoped(z, *options, x0, n), states[n - 1])


# ------------------------------------------------------------------------------------ baselines, scores


def test_moving_average__starts_anew_after_a_gap():
    u = np.array([[1, -1], [3, -3], [5, -5], [10, -10], [20, -20]])
    expected = np.array([1, 2, 4, 10, 15])
    assert_allclose(dense.moving_average(u, [0, 0, 0, 1, 1], 2), np.stack([expected, -expected], axis=1))


def test_pca__points_on_a_line():
    # along (3, 4) / 5 the frames are at 0, 5, 15, their mean at 20/3
    assert_allclose(dense.pca([[0, 0], [3, 4], [9, 12]], 1), [[-20 / 3], [-5 / 3], [25 / 3]])


def test_regression_scores__by_hand():
    # 0, 0, 3 on 0, 1, 2: slope 3/2, prediction −½, 1, 2½, residual ½, −1, ½ of rms √½; std √2: half of it
    correlation, nrmse_db = dense.regression_scores([[0], [1], [2]], [[0, 0], [0, 0], [3, -3]])
    assert_allclose(correlation, np.sqrt(0.75))
    assert_allclose(nrmse_db, 20 * np.log10(0.5))
