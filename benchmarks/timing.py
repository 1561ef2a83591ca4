"""How long calls take, for the benchmarks of this folder."""

import statistics
import time
from collections.abc import Callable, Mapping

__all__ = ["line", "seconds_in_turns"]


def seconds_in_turns(
    calls: Mapping[str, Callable[[], object]], rounds: int, seconds_per_round: float
) -> dict[str, float | Exception]:
    """CPU seconds of one call of each, medians over rounds: in turns, so that what else the machine does meets all.

    The first call, which compiles, is not counted.

    Returns:
      By name; what the first call raised, for those that cannot run.
    """
    found: dict[str, float | Exception] = {}
    times: dict[str, list[float]] = {}
    for name, call in calls.items():
        try:
            call()
            times[name] = []
        except Exception as error:
            found[name] = error
    for _ in range(rounds):
        for name, taken in times.items():
            taken.append(_round(calls[name], seconds_per_round))
    found |= {name: statistics.median(taken) for name, taken in times.items()}
    return {name: found[name] for name in calls}


def _round(call: Callable[[], object], seconds: float) -> float:
    """CPU seconds of one call, in a round of this length."""
    calls, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        call()
        calls += 1
    return (time.process_time() - start) / calls


def line(name: str, found: float | Exception, width: int) -> str:
    """One line of a table: microseconds, or why there are none."""
    if isinstance(found, Exception):
        return f"{name:{width}} fails: {type(found).__name__}: {str(found).splitlines()[0][:90]}"
    return f"{name:{width}} {1e6 * found:9.1f} us"
