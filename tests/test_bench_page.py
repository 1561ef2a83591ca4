"""The page of benchmarks and its pictures are made from what the benchmarks printed, all of them from the same run."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def bench_page(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import bench_page

    yield bench_page
    del sys.modules["bench_page"]


def test_the_page_is_that_of_what_was_printed(bench_page):
    assert bench_page.page() == bench_page.PAGE.read_text(encoding="utf-8"), "python tools/bench_page.py --kept"


def test_each_number_of_a_picture_was_printed(bench_page):
    for name, groups in bench_page.pictures().items():
        labels = re.findall(r"<text[^>]*>([^<]*)</text>", (bench_page.IMAGES / name).read_text(encoding="utf-8"))
        shown = sorted(label for label in labels if re.fullmatch(r"\d[\d,]*", label))
        printed = sorted(f"{time:,.0f}" for times in groups.values() for time in times.values())
        assert shown == printed, f"{name}: python tools/bench_page.py --kept"
        assert set(groups) <= {label.replace("&#x27;", "'") for label in labels}


def test_the_table_of_large_arrays_in_the_guide_has_what_was_printed(bench_page):
    guide = (ROOT / "docs" / "convert.md").read_text(encoding="utf-8")
    printed = bench_page.kept("bench_convert.py").splitlines()
    rows = {
        "variables passed as arguments": "  variables ",
        "closed over, `save_model`": "  closed over, save_model ",
        "closed over, saved by hand": "  closed over, saved by hand ",
        "in the module, as jax2tf has it": "  upstream, closed over ",
    }
    for subject, beginning in rows.items():
        [cells] = re.findall(rf"^\| {re.escape(subject)} \| (.*) \|$", guide, flags=re.M)
        [line] = [line for line in printed if line.startswith(beginning)]
        times = re.findall(r"(?:call|save|load) +([\d.]+) s", line.partition("its first call")[0])
        assert re.findall(r"([\d.]+) s", cells) == [time for time in times if time != "0.0"]


def test_the_readme_has_what_was_printed(bench_page):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = r"takes (\d+) us, .*? op \((\d+) us\); with jax2tf it takes ([\d.]+) ms"
    [(ours, bare, theirs)] = re.findall(shown, readme)
    times = {row.who: row for row in bench_page.rows("bench_convert.py")["sin f32[16]"]}
    assert (ours, bare) == (f"{times['jaxtf'].time:.0f}", f"{times['bare op'].time:.0f}")
    assert theirs == f"{times['upstream'].time / 1000:.1f}"


def test_what_a_script_printed_is_read_by_subject_and_by_who(bench_page, monkeypatch, tmp_path):
    (tmp_path / "bench_x.txt").write_text(
        "eager calls\n  sin f32[16]: bare op      63.2 us\n  sin f32[16]: jaxtf, any batch    1.5 ms\n"
        "  alone, jaxtf      1.0 us\n  sin f32[16]: upstream     fails: TypeError: no\n"
        "  sin f32[16], any: TensorFlow     20.0 us, wall     25.0 us\n"
        "  sin f32[16], any: jaxtf     41.7 us, wall     40.0 us\n"
        "  CNN, 3x3: jax.jit     3.82 ms   x  1.00 (of the least:  1.00), CPU x  1.00\n"
        "  CNN, 3x3: graph mode     5.34 ms   x  1.41 (of the least:  1.40), CPU x  0.72\n"
        "  CNN, 3x3: native mode     5.34 ms   x  1.41 (of the least:  1.40)\n"
    )
    monkeypatch.setattr(bench_page, "RESULTS", tmp_path)
    groups = bench_page.rows("bench_x.py")
    assert {subject: [tuple(row[1:]) for row in group] for subject, group in groups.items()} == {
        "sin f32[16]": [("bare op", 63.2, "us", None, None), ("jaxtf, any batch", 1.5, "ms", None, None)],
        "sin f32[16], any": [("TensorFlow", 20.0, "us", None, 25.0), ("jaxtf", 41.7, "us", None, 40.0)],
        "CNN, 3x3": [
            ("jax.jit", 3.82, "ms", 1.0, 1.0),
            ("graph mode", 5.34, "ms", 1.41, 0.72),
            ("native mode", 5.34, "ms", 1.41, None),
        ],
    }
    table = bench_page.table({"CNN, 3x3": groups["CNN, 3x3"]}, ["jax.jit", "graph mode", "native mode", "other"])
    assert table.splitlines()[-1] == "| CNN, 3x3 | 3.8 ms | x 1.41 (CPU x 0.72) | x 1.41 |  |"
    base, row = groups["sin f32[16], any"]
    assert bench_page.ratio_of(row, base) == "x 2.08 (wall x 1.60)"
