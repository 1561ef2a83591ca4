"""Names of lowering platforms."""

import pytest

from jaxtf.serialization import PlatformError
from jaxtf.serialization._record.platforms import check_platforms


def test_platforms_keep_the_order_they_are_given_in():
    assert check_platforms(["tpu", "cpu"], registered=()) == ("tpu", "cpu")


def test_a_registered_plugin_is_a_platform():
    assert check_platforms(["mine"], registered={"mine", "cpu"}) == ("mine",)


def test_a_platform_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(PlatformError) as caught:
        check_platforms(["cpu", "cdua"], registered={"cpu"})
    assert str(caught.value) == (
        "there is no lowering platform 'cdua'\n"
        "  asked:    platforms=('cpu', 'cdua')\n"
        "  platforms known here: 'cpu', 'cuda', 'rocm', 'tpu'\n"
        "  did you mean 'cuda'?"
    )


def test_gpu_is_answered_with_the_two_platforms_it_may_mean():
    with pytest.raises(PlatformError, match=r"did you mean 'cuda' \(NVIDIA\) or 'rocm' \(AMD\)\?"):
        check_platforms(["gpu"], registered=())


@pytest.mark.parametrize(
    ("platforms", "says"),
    [
        (
            "cpu",
            r"must be a sequence of names such as \('cpu', 'cuda'\); found 'cpu'\n  remedy: write platforms=\('cpu',\)",
        ),
        ([1], r"must be a sequence of names such as \('cpu', 'cuda'\); found \[1\]"),
        (5, r"must be a sequence of names such as \('cpu', 'cuda'\); found 5"),
        ({"cpu": 1}, r"must be a sequence of names such as \('cpu', 'cuda'\); found \{'cpu': 1\}"),
        (b"cpu", r"must be a sequence of names such as \('cpu', 'cuda'\); found b'cpu'"),
        ([], "platforms is empty"),
        (["cpu", "cpu"], r"names a platform twice: \('cpu', 'cpu'\)"),
    ],
)
def test_what_is_not_a_list_of_distinct_platforms_is_refused(platforms, says):
    with pytest.raises(PlatformError, match=says):
        check_platforms(platforms, registered=())
