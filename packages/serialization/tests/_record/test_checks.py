"""Safety checks by name, and the list of stable custom-call targets."""

import pytest

from jaxtf.serialization import DisabledCheckError, DisabledSafetyCheck, UnstableCustomCall
from jaxtf.serialization._record.checks import STABLE_CUSTOM_CALLS, check_custom_calls, checks_of


def test_disabled_checks_are_named_as_tensorflow_reads_them():
    assert str(DisabledSafetyCheck.platform()) == "platform"
    assert str(DisabledSafetyCheck.shape_assertions()) == "shape_assertions"
    assert str(DisabledSafetyCheck.custom_call("f")) == "custom_call:f"


def test_disabled_checks_are_equal_when_their_names_are():
    assert DisabledSafetyCheck.custom_call("f") == DisabledSafetyCheck.custom_call("f")
    assert DisabledSafetyCheck.custom_call("f") != DisabledSafetyCheck.custom_call("g")
    assert len({DisabledSafetyCheck.platform(), DisabledSafetyCheck.platform()}) == 1


def test_only_a_custom_call_check_names_a_target():
    assert DisabledSafetyCheck.custom_call("a:b").is_custom_call() == "a:b"
    assert DisabledSafetyCheck.platform().is_custom_call() is None


def of_jax(name):
    """As `jax.export.DisabledSafetyCheck` is, where there is no JAX: a class of JAX's whose text is the name."""
    methods = {"__str__": lambda _: name, "__repr__": lambda _: name, "__module__": "jax._src.export._export"}
    return type("DisabledSafetyCheck", (), methods)()


@pytest.mark.parametrize("name", ["platform", "shape_assertions", "custom_call:f"])
def test_checks_of_jax_are_taken_by_their_text(name):
    [check] = checks_of([of_jax(name)])
    assert check == DisabledSafetyCheck(name)


@pytest.mark.parametrize("given", ["platform", 5, None, object, of_jax("of_tomorrow"), of_jax("custom_call:")])
def test_what_is_not_a_check_is_refused(given):
    with pytest.raises(DisabledCheckError, match=r"^a disabled check must be a DisabledSafetyCheck\. Got: ") as caught:
        checks_of([given])
    assert "\n  remedy: DisabledSafetyCheck.platform()" in str(caught.value)


@pytest.mark.parametrize("given", ["platform", None, DisabledSafetyCheck.platform()])
def test_checks_are_a_list(given):
    with pytest.raises(DisabledCheckError, match=r"^disabled_checks must be a list of DisabledSafetyCheck"):
        checks_of(given)


def test_an_unstable_target_is_refused_with_its_place_and_the_check_to_disable():
    with pytest.raises(UnstableCustomCall) as caught:
        check_custom_calls([("mine", "model.py:3"), ("Sharding", "x"), ("mine", "model.py:9")], [])
    assert str(caught.value) == (
        "Cannot serialize code with custom calls whose targets have no compatibility guarantees:\n"
        "  'mine' at model.py:3\n"
        "  remedy: if you vouch for them, pass disabled_checks=[DisabledSafetyCheck.custom_call('mine')]"
    )


def test_for_a_target_of_lapack_the_first_remedy_is_to_write_it_out():
    with pytest.raises(
        UnstableCustomCall, match=r"remedy: export it with expand_linear_algebra=True, .*; or, if you vou"
    ):
        check_custom_calls([("lapack_sfuture_ffi", "model.py:3")], [])


@pytest.mark.parametrize("allowed", ["mine", "ALL"])
def test_an_unstable_target_passes_when_the_caller_allows_it(allowed):
    check_custom_calls([("mine", "here")], [DisabledSafetyCheck.custom_call(allowed)])


def test_shape_assertions_are_stable():
    assert "shape_assertion" in STABLE_CUSTOM_CALLS
