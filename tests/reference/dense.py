"""Every stage from samples to observer, written as the formula says: plain loops, whole matrices, float64.

T. Shnitzer, R. Talmon, J.-J. Slotine, "Manifold Learning with Contracting Observers for Data-driven
Time-series Analysis", IEEE Trans. Signal Processing (2017), is "the paper" below.

Letters, as in the paper: N frames i, j with p features z_i; C_i the local covariance and C_i⁺ its
pseudo-inverse; d(i, j) the distance, already squared; K the kernel, W = D⁻¹ K its Markov matrix with
eigenvalues μ_ℓ and right eigenvectors ψ_ℓ (m of them, ℓ = 1 … m); α (p, m) the lift; λ_ℓ > 0 the rates,
Λ = −diag(λ); γ the observer's gain. The exponent of the density normalisation is written a in formulas.
"""

import numpy as np
import scipy.linalg

# ------------------------------------------------------------------------------------ local covariances


def windows(segment, window):
    """For each frame i the list of frames in its window: ``window`` of them from i − window // 2 on.

    At an end of its own segment the window shifts inwards; a segment shorter than ``window`` is its own
    window. ``segment`` is equal within a segment and grows at every gap.
    """
    segment = np.asarray(segment)
    members = []
    for i in range(len(segment)):
        own = [j for j in range(len(segment)) if segment[j] == segment[i]]
        first, last = own[0], own[-1]
        start = i - window // 2
        start = min(start, last + 1 - window)
        start = max(start, first)
        stop = min(start + window, last + 1)
        members.append(list(range(start, stop)))
    return members


def window_covariances(z, segment, window):
    """C_i = Σ (z − z̄)(z − z̄)ᵀ / (n − 1) over the n frames in the window of frame i → (N, p, p)."""
    z = np.asarray(z, dtype=np.float64)
    n_frames, p = z.shape
    covariances = np.zeros((n_frames, p, p))
    for i, members in enumerate(windows(segment, window)):
        covariances[i] = np.cov(z[members], rowvar=False, ddof=1).reshape(p, p)
    return covariances


def pseudo_inverse(c, rank=None, tolerance=1e-3):
    """C⁺ = Σ_k v_k v_kᵀ / s_k over the eigenpairs with s_k > tolerance * s_max.

    At most ``rank`` of the largest are kept; the covariance 0 keeps none: C⁺ = 0.
    """
    c = np.asarray(c, dtype=np.float64)
    values, vectors = np.linalg.eigh(c)
    largest_first = np.argsort(values)[::-1]
    if rank is not None:
        largest_first = largest_first[:rank]
    inverse = np.zeros_like(c)
    for k in largest_first:
        if values[k] > tolerance * np.max(values):
            inverse += np.outer(vectors[:, k], vectors[:, k]) / values[k]
    return inverse


# ---------------------------------------------------------------------------------- distance and kernel


def distances(z, precisions):
    """d(i, j) = ½ (z_i − z_j)ᵀ (C_i⁺ + C_j⁺) (z_i − z_j), already squared → (N, N)."""
    z = np.asarray(z, dtype=np.float64)
    precisions = np.asarray(precisions, dtype=np.float64)
    n_frames = len(z)
    d = np.zeros((n_frames, n_frames))
    for i in range(n_frames):
        for j in range(n_frames):
            difference = z[i] - z[j]
            d[i, j] = 0.5 * difference @ (precisions[i] + precisions[j]) @ difference
    return d


def epsilon_median(d, factor=1.0):
    """ε = factor * median of d(i, j) over the pairs i < j."""
    n_frames = len(d)
    return factor * np.median([d[i, j] for i in range(n_frames) for j in range(i + 1, n_frames)])


def local_scales(d, k):
    """s_i = the k-th smallest of d(i, j) over j ≠ i, k = 1, 2, …; in the units of d."""
    n_frames = len(d)
    scales = np.zeros(n_frames)
    for i in range(n_frames):
        others = sorted(d[i, j] for j in range(n_frames) if j != i)
        scales[i] = others[k - 1]
    return scales


def kernel(d, epsilon):
    """K(i, j) = exp(−d(i, j) / ε)."""
    return np.exp(-np.asarray(d, dtype=np.float64) / epsilon)


def kernel_local(d, scales):
    """K(i, j) = exp(−d(i, j) / sqrt(s_i s_j))."""
    n_frames = len(d)
    k = np.zeros((n_frames, n_frames))
    for i in range(n_frames):
        for j in range(n_frames):
            k[i, j] = np.exp(-d[i, j] / np.sqrt(scales[i] * scales[j]))
    return k


# ------------------------------------------------------------------------------------------- eigenpairs


def eigenpairs(k, alpha, n_modes):
    """W ψ_ℓ = μ_ℓ ψ_ℓ with K_a(i, j) = K(i, j) / (q_i^a q_j^a), q_i = Σ_j K(i, j), W = D⁻¹ K_a.

    D^-½ K_a D^-½ v = μ v is solved instead, ψ = D^-½ v. Returns all N values of μ, descending, and ψ
    (N, n_modes) without the trivial ψ_0: mean_i ψ_ℓ(i)² = 1, its entry of largest magnitude positive.
    """
    k = np.asarray(k, dtype=np.float64)
    n_frames = len(k)
    q = k.sum(axis=1)
    normalised = np.zeros_like(k)
    for i in range(n_frames):
        for j in range(n_frames):
            normalised[i, j] = k[i, j] / (q[i] ** alpha * q[j] ** alpha)
    degree = normalised.sum(axis=1)
    symmetric = np.zeros_like(k)
    for i in range(n_frames):
        for j in range(n_frames):
            symmetric[i, j] = normalised[i, j] / (np.sqrt(degree[i]) * np.sqrt(degree[j]))
    values, vectors = scipy.linalg.eigh(symmetric)
    descending = np.argsort(values)[::-1]
    mu = values[descending]
    psi = np.zeros((n_frames, n_modes))
    for mode in range(n_modes):
        column = vectors[:, descending[mode + 1]] / np.sqrt(degree)
        column = column / np.sqrt(np.mean(column**2))
        psi[:, mode] = column * np.sign(column[np.argmax(np.abs(column))])
    return mu, psi


def nystrom(k_new, k, alpha, psi, mu):
    """ψ_ℓ(new) = (1/μ_ℓ) Σ_j W(new, j) ψ_ℓ(j) with W(new, j) ∝ K(new, j) / q_j^a, its rows summing to 1.

    ``k_new`` (n, N) holds the kernel of new with known frames, ``k`` (N, N) that of the known ones, and
    ``mu`` (m,) the eigenvalues of exactly the modes in ``psi`` (N, m). The new frame's own q cancels in W.
    """
    q = np.asarray(k, dtype=np.float64).sum(axis=1)
    extended = np.zeros((len(k_new), psi.shape[1]))
    for i in range(len(k_new)):
        row = np.asarray(k_new[i], dtype=np.float64) / q**alpha
        w = row / row.sum()
        extended[i] = (w @ psi) / np.asarray(mu)
    return extended


def distances_to_known(z_new, precisions_new, z, precisions):
    """d(new, j) = ½ (z_new − z_j)ᵀ (C_new⁺ + C_j⁺) (z_new − z_j) → (n, N)."""
    d = np.zeros((len(z_new), len(z)))
    for i in range(len(z_new)):
        for j in range(len(z)):
            difference = z_new[i] - z[j]
            d[i, j] = 0.5 * difference @ (precisions_new[i] + precisions[j]) @ difference
    return d


def one_sided_distances(z_new, z, precisions):
    """a²(new, j) = (z_new − z_j)ᵀ C_j⁺ (z_new − z_j) → (n, N)."""
    a2 = np.zeros((len(z_new), len(z)))
    for i in range(len(z_new)):
        for j in range(len(z)):
            difference = z_new[i] - z[j]
            a2[i, j] = difference @ precisions[j] @ difference
    return a2


def scales_of_new(d_new, k, factor=1.0):
    """s_new = factor * the k-th smallest of d(new, j), k = 1, 2, …"""
    return np.array([factor * sorted(row)[k - 1] for row in d_new])


def one_sided(a2_over_scale, q, alpha, psi, mu):
    """ψ_ℓ(new) = μ_ℓ^−½ Σ_j Ã(new, j) ψ_ℓ(j) with Ã(new, j) ∝ exp(−a² / (ε/2)) / q_j^a, its rows summing to 1.

    ``a2_over_scale`` (n, N) holds a²/ε, or a² / sqrt(s_new s_j); ``q`` (N,) row sums of the kernel.
    """
    extended = np.zeros((len(a2_over_scale), psi.shape[1]))
    for i in range(len(a2_over_scale)):
        row = np.exp(-a2_over_scale[i] / 0.5) / q**alpha
        extended[i] = (row / row.sum()) @ psi / np.sqrt(mu)
    return extended


def spectral_gap(mu_nontrivial):
    """The number of modes ℓ ≥ 1 with the largest gap μ_ℓ − μ_ℓ+1, from μ_1, μ_2, …, positive ones only.

    At most one less than there are positive values, of which it needs two; the smaller ℓ of equal gaps.
    """
    positive = [value for value in mu_nontrivial if value > 0]
    gaps = [positive[mode] - positive[mode + 1] for mode in range(len(positive) - 1)]
    return int(np.argmax(gaps)) + 1


# --------------------------------------------------------------------------------------------- observer


def lift(z, psi):
    """α(j, ℓ) = mean_i (z_j(i) − z̄_j) ψ_ℓ(i) → (p, m)."""
    z = np.asarray(z, dtype=np.float64)
    p, n_modes = z.shape[1], psi.shape[1]
    alpha = np.zeros((p, n_modes))
    for j in range(p):
        for mode in range(n_modes):
            alpha[j, mode] = np.mean((z[:, j] - np.mean(z[:, j])) * psi[:, mode])
    return alpha


def observer(
    z,
    segment,
    feature_mean,
    alpha,
    rates,
    gamma,
    step="exact",
    substeps=1,
    initial="steady",
    psi=None,
    carry=None,
):
    """x' = (1−γ) Λ x + γ Λ u_i, u_i = α† (z_i − z̄) held over one frame; state i has seen frames up to i.

    "exact": x⁺ = a x − γ/(1−γ) (1−a) u, a = exp(−(1−γ) λ); "euler": ``substeps`` times x += x' / substeps.
    The state before a segment's first frame i is −γ/(1−γ) u_i ("steady") or ψ(i) ("paper"); before the very
    first frame it is ``carry``, if given. Returns the states (N, m) and the last one.
    """
    z = np.asarray(z, dtype=np.float64)
    rates = np.asarray(rates, dtype=np.float64)
    alpha_pinv = np.linalg.pinv(np.asarray(alpha, dtype=np.float64))
    states = np.zeros((len(z), len(rates)))
    x = carry
    for i in range(len(z)):
        u = alpha_pinv @ (z[i] - feature_mean)

        starts_segment = i == 0 or segment[i] != segment[i - 1]
        continues = i == 0 and carry is not None
        if starts_segment and not continues:
            if initial == "steady":
                x = -gamma / (1 - gamma) * u
            elif initial == "paper":
                x = psi[i]
            else:
                raise ValueError(f"initial is 'steady' or 'paper'; got {initial!r}")

        if step == "exact":
            a = np.exp(-(1 - gamma) * rates)
            x = a * x - gamma / (1 - gamma) * (1 - a) * u
        elif step == "euler":
            for _ in range(substeps):
                x = x + (-(1 - gamma) * rates * x - gamma * rates * u) / substeps
        else:
            raise ValueError(f"step is 'exact' or 'euler'; got {step!r}")
        states[i] = x
    return states, x


def telescoped(z, feature_mean, alpha, rates, gamma, x0, n):
    """Aⁿ x_0 + Σ_{k<n} A^(n−1−k) B u_k, A = I + (1−γ) Λ, B = γ Λ: the Euler map after frames 0 … n − 1.

    The observer with one Euler step a frame as the filter it is, by explicit powers.
    """
    z = np.asarray(z, dtype=np.float64)
    alpha_pinv = np.linalg.pinv(np.asarray(alpha, dtype=np.float64))
    big_lambda = -np.diag(np.asarray(rates, dtype=np.float64))
    a = np.eye(len(big_lambda)) + (1 - gamma) * big_lambda
    b = gamma * big_lambda
    x = np.linalg.matrix_power(a, n) @ x0
    for k in range(n):
        u = alpha_pinv @ (z[k] - feature_mean)
        x = x + np.linalg.matrix_power(a, n - 1 - k) @ b @ u
    return x


def kalman(z, segment, feature_mean, alpha, poles, process, feature_noise, n_settle=2000):
    """The steady Kalman filter of x⁺ = A x + w, z − z̄ = α x + v, A = diag(``poles``), in all p features.

    The Riccati recursion is run until it has settled, with the (p, p) covariance of the innovations inverted:
    P⁺ = (I − G α) P, G = P αᵀ (α P αᵀ + N)⁻¹, N = diag(``feature_noise``). A segment starts from the state that
    its first frame, lasting for ever, would not move. Returns states (N, m), P⁺ and P.
    """
    a, n = np.diag(poles), np.diag(feature_noise)
    predicted = np.array(process, dtype=np.float64)
    for _ in range(n_settle):
        gain = predicted @ alpha.T @ np.linalg.inv(alpha @ predicted @ alpha.T + n)
        posterior = predicted - gain @ alpha @ predicted
        predicted = a @ posterior @ a.T + process
    states = np.zeros((len(z), len(poles)))
    for i in range(len(z)):
        residual = z[i] - feature_mean
        if i == 0 or segment[i] != segment[i - 1]:
            states[i] = np.linalg.solve(np.eye(len(poles)) - a + gain @ alpha @ a, gain @ residual)
        else:
            ahead = a @ states[i - 1]
            states[i] = ahead + gain @ (residual - alpha @ ahead)
    return states, posterior, predicted


def smoother(states, segment, poles, posterior, predicted):
    """Rauch, Tung and Striebel: x̂_i = x_i + C (x̂_{i+1} − A x_i), C = P⁺ A P⁻¹, and its error variances (N, m)."""
    a = np.diag(poles)
    c = posterior @ a @ np.linalg.inv(predicted)
    smoothed, variances = np.array(states), np.zeros_like(states)
    covariance = posterior
    for i in range(len(states) - 1, -1, -1):
        if i == len(states) - 1 or segment[i] != segment[i + 1]:
            covariance = posterior
        else:
            smoothed[i] = states[i] + c @ (smoothed[i + 1] - a @ states[i])
            covariance = posterior + c @ (covariance - predicted) @ c.T
        variances[i] = np.diag(covariance)
    return smoothed, variances


# ------------------------------------------------------------------------------------ baselines, scores


def moving_average(u, segment, width):
    """mean_j u_j over the frames i − width < j ≤ i of the segment of i: fewer at a segment's start."""
    u = np.asarray(u, dtype=np.float64)
    averages = np.zeros_like(u)
    for i in range(len(u)):
        last = [j for j in range(max(i - width + 1, 0), i + 1) if segment[j] == segment[i]]
        averages[i] = np.mean(u[last], axis=0)
    return averages


def pca(z, n_components):
    """Scores L S of the centred frames z − z̄ = L S Rᵀ, each with its entry of largest magnitude positive."""
    z = np.asarray(z, dtype=np.float64)
    left, singular, _ = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
    scores = np.zeros((len(z), n_components))
    for k in range(n_components):
        column = left[:, k] * singular[k]
        scores[:, k] = column * np.sign(column[np.argmax(np.abs(column))])
    return scores


def regression_scores(estimate, truth):
    """Least squares truth ≈ [1, estimate] B, then per column of truth (N, k) two arrays (k,).

    The correlation of prediction and truth, and nrmse_db = 20 log10(rms(truth − prediction) / std(truth)).
    """
    estimate = np.asarray(estimate, dtype=np.float64)
    truth = np.asarray(truth, dtype=np.float64)
    design = np.column_stack([np.ones(len(estimate)), estimate])
    coefficients, _, _, _ = np.linalg.lstsq(design, truth, rcond=None)
    prediction = design @ coefficients
    n_columns = truth.shape[1]
    correlation, nrmse_db = np.zeros(n_columns), np.zeros(n_columns)
    for k in range(n_columns):
        correlation[k] = np.corrcoef(prediction[:, k], truth[:, k])[0, 1]
        rms = np.sqrt(np.mean((truth[:, k] - prediction[:, k]) ** 2))
        nrmse_db[k] = 20 * np.log10(rms / np.std(truth[:, k]))
    return correlation, nrmse_db


def from_prior(inputs, segment, poles, process, noise):
    """Kalman filter and smoother of x⁺ = A x + w, u = x + v, each segment from its mean with its stationary variance.

    Returns (states (N, m), error variances (N, m)) of both.
    """
    a, m = np.diag(poles), len(poles)
    filtered, smoothed = (np.zeros((len(inputs), m)) for _ in range(2))
    variances, smoothed_variances = (np.zeros((len(inputs), m)) for _ in range(2))
    for number in np.unique(segment):
        own, posts, befores = np.flatnonzero(segment == number), [], []
        state, predicted = np.zeros(m), process / (1 - np.outer(poles, poles))
        for i in own:
            gain = predicted @ np.linalg.inv(predicted + noise)
            state = a @ state if i > own[0] else state
            state = state + gain @ (inputs[i] - state)
            posts.append(predicted - gain @ predicted)
            befores.append(predicted)
            predicted = a @ posts[-1] @ a.T + process
            filtered[i], variances[i] = state, np.diag(posts[-1])
        ahead, covariance = state, posts[-1]
        for k, i in reversed(list(enumerate(own))):
            if i < own[-1]:
                c = posts[k] @ a.T @ np.linalg.inv(befores[k + 1])
                ahead = filtered[i] + c @ (ahead - a @ filtered[i])
                covariance = posts[k] + c @ (covariance - befores[k + 1]) @ c.T
            smoothed[i], smoothed_variances[i] = ahead, np.diag(covariance)
    return (filtered, variances), (smoothed, smoothed_variances)
