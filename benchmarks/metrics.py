"""All metrics of one representation, beside the original protocols written with scikit-learn. One run, one table.

    python benchmarks/metrics.py --quick          # 2,000 + 1,000 rows, about a minute
    python benchmarks/metrics.py                  # 10,000 + 5,000 rows; scikit-learn's DCI alone takes six minutes
    python benchmarks/metrics.py --downstream     # downstream learners too
    OMP_NUM_THREADS=1 python benchmarks/metrics.py --clock cpu     # CPU seconds, for a machine with other work

Codes are ten latents of the five dSprites factors: each factor turned a little into the others, five latents of noise.
The left column is what the published code does, one loop at a time; batches with one factor fixed are drawn from the
same rows on both sides. Sampled scores differ by their Monte-Carlo error.
"""

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = (3, 6, 40, 32, 32)
Tables = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def representation(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(0, size, n_rows) for size in SIZES], axis=1)
    scaled = (factors - factors.mean(0)) / factors.std(0)
    turned = scaled @ (np.eye(5) + 0.25 * np.random.default_rng(1).normal(size=(5, 5)))
    return np.c_[turned, np.zeros((n_rows, 5))] + 0.1 * rng.normal(size=(n_rows, 10)), factors


def discretise(codes: np.ndarray) -> np.ndarray:
    bins = [np.digitize(column, np.histogram(column, 20)[1][:-1]) for column in codes.T]
    return np.stack(bins, axis=1)


def mutual_information(codes: np.ndarray, factors: np.ndarray) -> np.ndarray:
    from sklearn.metrics import mutual_info_score

    return np.array([[mutual_info_score(f, c) for f in factors.T] for c in discretise(codes).T])


def theirs_mig(codes: np.ndarray, factors: np.ndarray, *_: Any) -> float:
    from sklearn.metrics import mutual_info_score

    ordered = np.sort(mutual_information(codes, factors), axis=0)[::-1]
    entropies = [mutual_info_score(f, f) for f in factors.T]
    return float(np.mean((ordered[0] - ordered[1]) / entropies))


def theirs_modularity(codes: np.ndarray, factors: np.ndarray, *_: Any) -> float:
    squares = mutual_information(codes, factors) ** 2
    best = squares.max(1)
    return float(np.mean(1 - (squares.sum(1) - best) / (best * (factors.shape[1] - 1))))


def theirs_explicitness(codes: np.ndarray, factors: np.ndarray, test: np.ndarray, truth: np.ndarray) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import StandardScaler, label_binarize

    scaler, areas = StandardScaler().fit(codes), []
    for k in range(factors.shape[1]):
        model = LogisticRegression().fit(scaler.transform(codes), factors[:, k])
        chances = model.predict_proba(scaler.transform(test))
        areas.append(roc_auc_score(label_binarize(truth[:, k], classes=model.classes_), chances))
    return float(np.mean(areas))


def theirs_dci(codes: np.ndarray, factors: np.ndarray, test: np.ndarray, truth: np.ndarray) -> float:
    from scipy.stats import entropy
    from sklearn.ensemble import GradientBoostingClassifier

    importance, accuracy = np.zeros((codes.shape[1], factors.shape[1])), []
    for k in range(factors.shape[1]):
        model = GradientBoostingClassifier().fit(codes, factors[:, k])
        importance[:, k] = np.abs(model.feature_importances_)
        accuracy.append((np.mean(model.predict(codes) == factors[:, k]), np.mean(model.predict(test) == truth[:, k])))
    per_latent = 1 - entropy(importance.T + 1e-11, base=factors.shape[1])
    return float(np.sum(per_latent * importance.sum(1) / importance.sum()))


def theirs_sap(codes: np.ndarray, factors: np.ndarray, test: np.ndarray, truth: np.ndarray) -> float:
    from sklearn.svm import LinearSVC

    accuracy = np.zeros((codes.shape[1], factors.shape[1]))
    for j in range(codes.shape[1]):
        for k in range(factors.shape[1]):
            model = LinearSVC(C=0.01, class_weight="balanced").fit(codes[:, j : j + 1], factors[:, k])
            accuracy[j, k] = np.mean(model.predict(test[:, j : j + 1]) == truth[:, k])
    ordered = np.sort(accuracy, axis=0)
    return float(np.mean(ordered[-1] - ordered[-2]))


def _groups(factors: np.ndarray) -> list[list[np.ndarray]]:
    return [[np.flatnonzero(f == value) for value in range(f.max() + 1)] for f in factors.T]


def theirs_beta_vae(codes: np.ndarray, factors: np.ndarray, *_: Any) -> float:
    from sklearn.linear_model import LogisticRegression

    rng, n_train, n_batches = np.random.default_rng(0), 10_000, 15_000
    order = np.argsort(factors, axis=0, kind="stable")
    counts = [np.bincount(f) for f in factors.T]
    starts = [np.cumsum(count) - count for count in counts]
    points, labels = np.zeros((n_batches, codes.shape[1])), np.zeros(n_batches, int)
    for i in range(n_batches):
        k = labels[i] = rng.integers(factors.shape[1])
        first = rng.integers(len(codes), size=64)
        values = factors[first, k]
        second = order[starts[k][values] + (rng.random(64) * counts[k][values]).astype(int), k]
        points[i] = np.mean(np.abs(codes[first] - codes[second]), axis=0)
    model = LogisticRegression(random_state=0).fit(points[:n_train], labels[:n_train])
    return float(model.score(points[n_train:], labels[n_train:]))


def theirs_factor_vae(codes: np.ndarray, factors: np.ndarray, *_: Any) -> float:
    rng, groups = np.random.default_rng(0), _groups(factors)
    variance = codes[rng.permutation(len(codes))[:10_000]].var(axis=0, ddof=1)
    votes = np.zeros((2, codes.shape[1], factors.shape[1]))
    for part, n_votes in enumerate((10_000, 5_000)):
        for _vote in range(n_votes):
            k = rng.integers(factors.shape[1])
            rows = rng.choice(groups[k][rng.integers(len(groups[k]))], size=64)
            votes[part, np.argmin(codes[rows].var(axis=0, ddof=1) / variance), k] += 1
    answer = votes[0].argmax(1)
    return float(votes[1][np.arange(codes.shape[1]), answer].sum() / votes[1].sum())


def theirs_irs(codes: np.ndarray, factors: np.ndarray, *_: Any) -> float:
    binned = discretise(factors)
    largest = np.max(np.abs(codes - codes.mean(0)), axis=0)
    scores = np.zeros((codes.shape[1], factors.shape[1]))
    for k in range(factors.shape[1]):
        spreads = []
        for value in np.unique(binned[:, k]):
            group = codes[binned[:, k] == value]
            spreads.append(np.percentile(np.abs(group - group.mean(0)), q=99, axis=0))
        scores[:, k] = 1 - np.mean(spreads, axis=0) / largest
    return float(np.average(scores.max(1), weights=largest))


def theirs_ds(codes: np.ndarray, factors: np.ndarray, test: np.ndarray, truth: np.ndarray) -> float:
    from sklearn.neighbors import KNeighborsClassifier

    told = np.zeros((codes.shape[1], factors.shape[1]))
    for j in range(codes.shape[1]):
        for k in range(factors.shape[1]):
            model = KNeighborsClassifier(5).fit(codes[:, j : j + 1], factors[:, k])
            constant = np.bincount(truth[:, k]).max() / len(truth)
            told[j, k] = max(0.0, (model.score(test[:, j : j + 1], truth[:, k]) - constant) / (1 - constant))
    ordered = np.sort(told, axis=0)
    return float(np.mean(ordered[-1] - ordered[-2]))


def theirs_infomec(codes: np.ndarray, factors: np.ndarray, *_: Any) -> float:
    from sklearn.feature_selection import mutual_info_classif
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss, mutual_info_score
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler().fit_transform(codes)
    told = np.stack([mutual_info_classif(scaled, f, n_neighbors=10, random_state=0) for f in factors.T], axis=1)
    share = told / [mutual_info_score(f, f) for f in factors.T]
    for f in factors.T:
        model = LogisticRegression(C=np.inf, class_weight="balanced").fit(scaled, f)
        log_loss(f, model.predict_proba(scaled))
    active = np.ptp(codes, axis=0) > np.ptp(codes, axis=0).max() / 20
    ratio = np.mean(share[active].max(1) / share[active].sum(1))
    return float((ratio - 1 / factors.shape[1]) / (1 - 1 / factors.shape[1]))


def theirs_mcc(codes: np.ndarray, factors: np.ndarray, *_: Any) -> float:
    from scipy.optimize import linear_sum_assignment

    table = np.abs(np.corrcoef(codes.T, factors.T)[: codes.shape[1], codes.shape[1] :])
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].mean())


def theirs_total_correlation(codes: np.ndarray, *_: Any) -> float:
    covariance = np.cov(codes.T)
    return float(0.5 * (np.sum(np.log(np.diag(covariance))) - np.linalg.slogdet(covariance)[1]))


def theirs_wasserstein(codes: np.ndarray, *_: Any) -> float:
    from scipy.linalg import sqrtm

    covariance = np.cov(codes.T)
    root = sqrtm(covariance @ np.diag(np.diag(covariance)))
    return float(2 * np.trace(covariance) - 2 * np.trace(np.real(root)))


def theirs_averaged_mi(codes: np.ndarray, *_: Any) -> float:
    matrix = mutual_information(codes, discretise(codes))
    return float((matrix.sum() - np.trace(matrix)) / (len(matrix) ** 2 - len(matrix)))


def _theirs_downstream(learner: Callable[[], Any]) -> Callable[..., float]:
    def accuracy(codes: np.ndarray, factors: np.ndarray, test: np.ndarray, truth: np.ndarray) -> float:
        for size in (size for size in (10, 100, 1_000, 10_000) if size <= len(codes)):
            found = []
            for k in range(factors.shape[1]):
                if len(np.unique(factors[:size, k])) > 1:
                    found.append(learner().fit(codes[:size], factors[:size, k]).score(test, truth[:, k]))
        return float(np.mean(found))

    return accuracy


def _logistic_cv() -> Any:
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import KFold

    return LogisticRegressionCV(Cs=10, cv=KFold(5), scoring="accuracy")


def _boosting() -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier()


THEIRS: dict[str, Callable[..., float]] = {
    "mig": theirs_mig,
    "modularity": theirs_modularity,
    "explicitness": theirs_explicitness,
    "dci": theirs_dci,
    "sap_score": theirs_sap,
    "beta_vae_sklearn": theirs_beta_vae,
    "factor_vae_score": theirs_factor_vae,
    "irs": theirs_irs,
    "ds": theirs_ds,
    "infomec": theirs_infomec,
    "mcc": theirs_mcc,
    "gaussian_total_correlation": theirs_total_correlation,
    "gaussian_wasserstein_correlation": theirs_wasserstein,
    "mutual_info_score": theirs_averaged_mi,
}
DOWNSTREAM: dict[str, Callable[..., float]] = {
    "downstream_task_logistic_regression": _theirs_downstream(_logistic_cv),
    "downstream_task_boosted_trees": _theirs_downstream(_boosting),
}


def measure_theirs(
    tables: Tables, chosen: dict[str, Callable[..., float]], clock: Callable[[], float]
) -> dict[str, tuple[float, float]]:
    found = {}
    for name, function in chosen.items():
        begin = clock()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = function(*tables)
        found[name] = (value, clock() - begin)
        print(f"  scikit-learn {name}: {found[name][1]:.2f} s", flush=True)
    return found


def measure_ours(
    tables: Tables, names: list[str], clock: Callable[[], float]
) -> tuple[dict[str, tuple[float, float]], float, float]:
    """Our scores and times by metric, the time of a first representation with all set-up, and of a second one."""
    begin = clock()
    from unweave.evaluation.measure import Measurer

    codes, factors = np.concatenate(tables[::2]), np.concatenate(tables[1::2])
    measurer = Measurer(factors, names, (len(tables[0]), len(tables[2])), seeds=0)
    ends: dict[str, float] = {}

    def watch(done: int, total: int, name: str) -> None:
        ends[name] = clock()

    scores = measurer.measure(codes, watch=watch)
    first, times = clock() - begin, list(ends.values())
    seconds = {name: after - before for name, before, after in zip(ends, times, times[1:])}
    begin = clock()
    measurer.measure(codes[:, ::-1] * 1.1)
    values = {key.partition(".")[0]: number.value for key, number in reversed(scores.numbers.items())}
    return {name: (float(values[name]), seconds[name]) for name in names}, first, clock() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2,000 + 1,000 rows")
    parser.add_argument("--downstream", action="store_true", help="downstream learners too")
    parser.add_argument("--metrics", help="only these, by name")
    parser.add_argument("--clock", default="wall", choices=("wall", "cpu"), help="what is timed (wall)")
    parser.add_argument("--out", help="write the numbers as JSON")
    given = parser.parse_args()
    n_train, n_test = (2_000, 1_000) if given.quick else (10_000, 5_000)
    codes, factors = representation(n_train + n_test, 0)
    tables: Tables = codes[:n_train], factors[:n_train], codes[n_train:], factors[n_train:]
    chosen = THEIRS | (DOWNSTREAM if given.downstream else {})
    if given.metrics:
        chosen = {name: (THEIRS | DOWNSTREAM)[name] for name in given.metrics.split(",")}
    print(f"{n_train:,} + {n_test:,} rows, 10 latents, 5 factors; {os.cpu_count()} cores, {platform.processor()}")
    clock = time.process_time if given.clock == "cpu" else time.perf_counter
    theirs = measure_theirs(tables, chosen, clock)
    ours, first, second = measure_ours(tables, list(chosen), clock)
    rows = []
    print(f"\n{given.clock + ' seconds':38}{'scikit-learn':>22}{'unweave':>22}{'ratio':>8}")
    for name, (value, seconds) in theirs.items():
        rows.append(
            {"metric": name, "theirs": value, "theirs_s": seconds, "ours": ours[name][0], "ours_s": ours[name][1]}
        )
        shown = f"{value:12.4f}{seconds:8.2f} s{ours[name][0]:12.4f}{ours[name][1]:8.2f} s"
        print(f"{name:38}{shown}{seconds / max(ours[name][1], 1e-4):7.1f}×")
    total = sum(row["theirs_s"] for row in rows)
    print(f"{'all, imports and set-up included':38}{total:20.2f} s{first:20.2f} s{total / first:7.1f}×")
    print(f"{'a second representation':38}{total:20.2f} s{second:20.2f} s{total / second:7.1f}×")
    if given.out:
        with open(given.out, "w") as file:
            json.dump({"rows": rows, "theirs_s": total, "first_s": first, "second_s": second}, file, indent=1)


if __name__ == "__main__":
    main()
