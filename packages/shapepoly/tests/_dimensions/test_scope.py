"""Scopes: constraints, contradictions, mixing."""

import copy
import gc
import itertools
import pickle
import re
import subprocess
import sys
import weakref

import pytest

from jaxtf.shapepoly import (
    InconclusiveDimensionOperation,
    IntegerOperations,
    ScopeError,
    ShapeMismatch,
    ShapeSpecError,
    SizeReader,
    SymbolicScope,
    solve_dimension_variables,
    symbolic_shape,
)


def test_a_scope_shows_its_constraints():
    scope = SymbolicScope(["a >= b", "b <= 8"])
    assert str(scope) == "symbolic scope with constraints:\n  a >= b\n  b <= 8"
    assert repr(scope) == "SymbolicScope(['a >= b', 'b <= 8'])"
    assert [str(constraint) for constraint in scope.constraints] == ["a >= b", "b <= 8"]


def test_a_contradiction_names_the_culprits_and_only_these():
    with pytest.raises(ScopeError) as caught:
        SymbolicScope(["c >= 3", "a >= b + 1", "d == 2*c", "b >= a"])
    assert str(caught.value) == (
        "these symbolic constraints contradict each other (dimension variables are at least 1):\n  a >= b + 1\n  b >= a"
    )


@pytest.mark.parametrize("text", ["a <= 0", "2*a == 3", "3 >= 4", "mod(a, 4) == 5", "a >= a + 1", "a == b + a"])
def test_a_constraint_that_no_size_satisfies_is_refused(text):
    with pytest.raises(ScopeError) as caught:
        SymbolicScope([text])
    assert str(caught.value) == (
        f"no sizes satisfy the symbolic constraint '{text}' (dimension variables are at least 1)"
    )


@pytest.mark.parametrize("order", [1, -1])
def test_a_divisor_in_a_constraint_may_owe_it_to_another_constraint_that_it_is_not_zero(order):
    a, b, c = symbolic_shape("a, b, c", constraints=["a >= b + 1", "floordiv(c, a - b) >= 2"][::order])
    assert c // (a - b) >= 2
    solution = solve_dimension_variables([("args[0]", (a, b, c))])
    assert solution.run(IntegerOperations([(4, 2, 5)])) == {"a": 4, "b": 2, "c": 5}
    with pytest.raises(ShapeMismatch, match=r"constraint a >= b \+ 1. Expected 'a - b - 1' to be greater"):
        solution.run(IntegerOperations([(2, 2, 5)]))


def test_a_divisor_in_a_constraint_that_can_be_zero_is_refused():
    with pytest.raises(InconclusiveDimensionOperation, match="Cannot divide 'c' by 'a - b'"):
        SymbolicScope(["floordiv(c, a - b) >= 2", "a >= b"])


def test_dimensions_of_two_scopes_do_not_mix():
    (a1,) = symbolic_shape("a,")
    (a2,) = symbolic_shape("a,", constraints=("a >= 8",))
    assert a1 != a2
    with pytest.raises(ScopeError) as caught:
        a1 + a2
    assert str(caught.value) == (
        "Invalid mixing of symbolic scopes for 'a' + 'a'.\n"
        "  'a' belongs to a symbolic scope without constraints\n"
        "  'a' belongs to a symbolic scope with constraints:\n"
        "  a >= 8\n"
        "  make them in one call of symbolic_shape, or pass scope=a.scope to the second call\n"
        "  if you made only one of them, the other was kept from an earlier trace, as by a library that caches what it "
        "computes from sizes: empty that cache before each trace, or fill it with constant sizes first"
    )
    for operation in (lambda: a1 * a2, lambda: a1 // a2, lambda: a1 >= a2, lambda: a1.max(a2), lambda: divmod(a1, a2)):
        with pytest.raises(ScopeError, match="Invalid mixing of symbolic scopes"):
            operation()
    with pytest.raises(ScopeError, match=r"args\[0\].shape\[0\] is 'a'.*\n  and args\[1\].shape\[0\] is 'a'"):
        solve_dimension_variables([("args[0]", (a1,)), ("args[1]", (a2,))])


def test_a_scope_is_reused_by_passing_it():
    (a,) = symbolic_shape("a,", constraints=("a >= 8",))
    (b,) = symbolic_shape("b,", scope=a.scope)
    assert a + b >= 9


def test_a_scope_takes_no_further_constraints():
    with pytest.raises(ValueError, match="Cannot specify both a `scope` and `constraints`"):
        symbolic_shape("a", scope=SymbolicScope(), constraints=["a >= 2"])


def test_a_constraint_is_a_text():
    with pytest.raises(TypeError, match="a constraint is a text such as 'a >= b'; found 3 of type int"):
        SymbolicScope([3])


def test_copies_belong_to_the_same_scope():
    a, b = symbolic_shape("a, b", constraints=["a >= b"])
    assert copy.deepcopy((a, b)) == (a, b)
    assert copy.copy(a) == a


def test_pickling_keeps_the_shape_and_its_constraints_together():
    shape = symbolic_shape("a, 2*b + mod(a, 3)", constraints=["a >= b"])
    a, d = pickle.loads(pickle.dumps(shape))
    assert (str(a), str(d)) == ("a", "2*b + mod(a, 3)")
    assert a.scope is d.scope
    assert [str(c) for c in a.scope.constraints] == ["a >= b"]
    assert hash(a + 0) == hash(a)


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "texts",
    [
        ["(b+d+1)^60 >= 1"] * 60,
        [f"(b+d+{index})^60 >= 1" for index in range(60)],
        [f"{'(a+b+c+1)*' * 12}(a+d+{index}) >= 1" for index in range(200)],
    ],
    ids=["equal", "powers", "products"],
)
def test_constraints_that_take_many_products_together_are_refused(texts):
    SymbolicScope(texts[:1])
    with pytest.raises(ShapeSpecError, match="the constraints of the scope have too many products of terms"):
        SymbolicScope(texts)


def test_a_thousand_plain_constraints_are_not_too_many():
    assert len(SymbolicScope([f"{index}*a + b*c >= {index}" for index in range(1000)]).constraints) == 1000


def test_what_comes_back_from_a_pickle_belongs_to_its_siblings():
    a, b = symbolic_shape("a, b", constraints=["a >= b"])
    again = pickle.loads(pickle.dumps(b))
    assert again.scope is b.scope
    assert (a + again, a >= again) == (a + b, True)
    other, _ = symbolic_shape("a, b", constraints=["a >= b"])
    with pytest.raises(ScopeError, match="Invalid mixing"):
        pickle.loads(pickle.dumps(other)) + b


def test_what_is_pickled_one_by_one_is_of_one_scope_in_another_process(tmp_path):
    a, b = symbolic_shape("a, b", constraints=["a >= b"])
    (tmp_path / "a").write_bytes(pickle.dumps(a))
    (tmp_path / "b").write_bytes(pickle.dumps(b))
    program = (
        "import pathlib, pickle, sys\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "a, b = (pickle.loads((folder / name).read_bytes()) for name in 'ab')\n"
        "assert a >= b and a.scope is b.scope\n"
        "(folder / 'sum').write_bytes(pickle.dumps(a + b))\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    assert pickle.loads((tmp_path / "sum").read_bytes()) - b == a


def test_a_scope_that_was_pickled_is_freed():
    (a,) = symbolic_shape("a")
    blob, dropped = pickle.dumps(a), weakref.ref(a.scope)
    del a
    gc.collect()
    assert dropped() is None
    assert str(pickle.loads(blob)) == "a"


VARIABLES = [f"v{index}" for index in range(200)]


@pytest.mark.parametrize(
    "texts",
    [
        [f"{left} >= {right} + 1" for left, right in itertools.pairwise(VARIABLES[:101])] + ["v100 >= v0"],
        [f"{VARIABLES[i]} == 2*{VARIABLES[i + 1]} + {VARIABLES[(i * 11) % 200]}" for i in range(150)],
        [f"{VARIABLES[i]}*{VARIABLES[i + 1]} == {VARIABLES[(i * 11) % 200]}*{VARIABLES[i]} + {i}" for i in range(150)],
        [f"floordiv({VARIABLES[i]}, {VARIABLES[i + 1]} - floordiv({VARIABLES[i + 1]}, 2)) >= 2" for i in range(100)],
        [f"floordiv(a, {left} - {right}) >= 1" for left, right in itertools.pairwise(VARIABLES[:61])]
        + [f"{left} >= {right} + 1" for left, right in itertools.pairwise(VARIABLES[:61])],
    ],
    ids=["contradiction", "equations", "products", "divisions", "divisors"],
)
def test_what_is_decided_about_constraints_of_others_is_bounded(texts):
    """Each of these took from 6 seconds to minutes."""
    with pytest.raises(ShapeSpecError, match="the constraints of the scope take too many steps to read"):
        SymbolicScope(texts, most_steps=1_000_000)


def test_a_bound_changes_nothing_of_what_stays_in_it():
    texts = ["a >= b", "b >= 16", "c <= 4*a", "d == 2*c", "a + b <= 1024", "mod(a, 8) == 0", "e >= f", "f <= 128"]
    free, bounded = SymbolicScope(texts), SymbolicScope(texts, most_steps=10_000)
    assert [str(constraint) for constraint in bounded.constraints] == [
        str(constraint) for constraint in free.constraints
    ]
    for scope in (free, bounded):
        a, b, d = symbolic_shape("a, b, d", scope=scope)
        assert a + b >= 32
        assert d % 2 == 0
    with pytest.raises(ScopeError, match="contradict each other"):
        SymbolicScope([*texts, "a + d <= 17"], most_steps=1_000_000)


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    "texts",
    [
        [f"(b + d + {index})^60" for index in range(60)],
        ["max(" + ", ".join(f"{VARIABLES[i]}*{VARIABLES[i + 1]} - {i}" for i in range(150)) + ")"],
        [f"floordiv((a + b + c + {index})^25, (a + b + {index + 1})^8)" for index in range(20)],
        ["+".join(f"a{index}" for index in range(20_000))],
        ["+".join(f"a{index}" for index in range(2_000))],
        ["+".join(f"a{index}" for index in range(3_000)) + f"+ {end}" for end in range(50)],
    ],
    ids=["powers", "maxima", "divisions", "a long sum", "a shorter sum", "long sums"],
)
def test_what_sizes_of_others_take_to_read_is_bounded(texts):
    """Each of these took from a second to minutes."""
    reader = SizeReader(SymbolicScope(), most_steps=1_000_000)
    with pytest.raises(ShapeSpecError, match=r"the sizes take too many steps to read|more than 5000 terms"):
        list(map(reader.size, texts))


def test_a_size_reader_reads_what_symbolic_shape_reads():
    scope = SymbolicScope(["a >= b"])
    reader = SizeReader(scope, most_steps=10_000)
    texts = ["a", "2*a*b + 3", "max(a, b)", "floordiv(a, 4)", "mod(b, a)", "7", "a - a + 2"]
    assert [reader.size(text) for text in texts] == [symbolic_shape(text, scope=scope)[0] for text in texts]


@pytest.mark.parametrize(
    ("text", "message"),
    [("a, b", "'a, b' is not one size"), ("", "'' is not one size"), ("_", "'_' is not one size"), ("...", "not one")],
)
def test_what_is_not_one_size_is_refused(text, message):
    with pytest.raises(ShapeSpecError, match=message):
        SizeReader(SymbolicScope(), most_steps=100).size(text)


def test_a_negative_size_is_refused():
    with pytest.raises(ShapeSpecError, match="the size '2 - 3' is -1"):
        SizeReader(SymbolicScope(), most_steps=100).size("2 - 3")


@pytest.mark.parametrize(
    ("inequality", "equality"),
    [
        ("c <= 0", "floordiv(a, 7) == c"),
        ("mod(a, a) >= c", "floordiv(a, 7) == c + 10"),
        ("c >= 2*c", "floordiv(a, 3) == c"),
        ("b >= b + c", "c == floordiv(b, 2)"),
    ],
)
def test_an_inequality_that_no_size_satisfies_is_named_beside_equalities(inequality, equality):
    with pytest.raises(ScopeError, match=f"no sizes satisfy the symbolic constraint '{re.escape(inequality)}'"):
        SymbolicScope([inequality, equality])
