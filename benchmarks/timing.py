"""How long a call takes, for the benchmarks of this folder."""

import statistics
import time
from collections.abc import Callable

__all__ = ["seconds_per_call"]


def seconds_per_call(call: Callable[[], object], rounds: int, seconds_per_round: float) -> float:
    """Median over rounds of the CPU seconds of one call; the first call, which compiles, is not counted."""
    call()
    found = []
    for _ in range(rounds):
        calls, start = 0, time.process_time()
        while time.process_time() - start < seconds_per_round:
            call()
            calls += 1
        found.append((time.process_time() - start) / calls)
    return statistics.median(found)
