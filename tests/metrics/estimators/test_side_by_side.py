"""Work on several threads gives its results in order and leaves no setting behind."""

import threading
import time

import pytest
import torch

from unweave.metrics.estimators.side_by_side import side_by_side


@pytest.mark.parametrize("n_threads", [1, 3])
def test_results_keep_their_order_and_settings_are_restored(n_threads: int) -> None:
    before = torch.get_num_threads()
    begun: list[int] = []
    seen: set[tuple[int, int]] = set()

    def work(item: int) -> int:
        begun.append(item)
        seen.add((threading.get_ident(), torch.get_num_threads()))
        time.sleep(0.01)
        return item**2

    try:
        torch.set_num_threads(n_threads)
        assert side_by_side(work, range(6), size=lambda item: item) == [0, 1, 4, 9, 16, 25]
        assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(before)
    assert len({thread for thread, _ in seen}) == n_threads
    assert {count for _, count in seen} == {1}
    # the largest begin first where there is a choice
    assert set(begun[:3]) == ({5, 4, 3} if n_threads > 1 else {0, 1, 2})


def test_what_goes_wrong_is_told() -> None:
    def work(item: int) -> float:
        return 1 / item

    with pytest.raises(ZeroDivisionError):
        side_by_side(work, [1, 0])
    assert side_by_side(work, []) == []
