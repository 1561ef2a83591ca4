"""Each family of operations gives JAX's numbers, whatever its attributes and sizes, or is refused as documented.

A fixed hundred programs are tried always; `RANDOM_PROGRAMS` of each family, others each time, in the session
`random_families`, and 500 if it is not set. There each program is written to build/random_families before it runs: if
it ends the process, the file names it. What fails is added to a file there before it is made smaller, as that may end
the process too.
"""

from pathlib import Path

import jax
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from .drawing import FULL, drawn
from .families import FAMILIES
from .families.documented import is_documented
from .families.trial import NotACase, compare, trials

NOTES = Path(__file__).parents[1] / "build" / "random_families"


@pytest.fixture(autouse=True)
def _without_compiled_programs():
    yield
    jax.clear_caches()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_gives_the_numbers_of_jax(family):
    if FULL:
        NOTES.mkdir(parents=True, exist_ok=True)

    @given(st.data())
    @drawn(100 // len(FAMILIES) + 1, 500)
    def runs(data):
        case = data.draw(FAMILIES[family](), label="case")
        trial = data.draw(trials(case), label="trial")
        if FULL:
            (NOTES / f"{family}.txt").write_text(f"{case}\n{trial}\n", encoding="utf-8")
        try:
            compare(case, trial)
        except NotACase:
            assume(False)
        except Exception as error:
            if not is_documented(family, case, trial, error):
                if FULL:
                    with (NOTES / f"{family}-failed.txt").open("a", encoding="utf-8") as failed:
                        failed.write(f"{case}\n{trial}\n{type(error).__name__}: {error}\n\n")
                raise

    runs()
