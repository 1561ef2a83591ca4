"""Tables of answers stay within their bound."""

from jaxtf.shapepoly._expressions.memo import Memo


def test_a_full_table_forgets_its_oldest_half():
    memo = Memo(4)
    for key in range(5):
        assert memo.put(key, -key) == -key
    assert [memo.get(key) for key in range(5)] == [None, None, -2, -3, -4]


def test_a_table_stays_within_its_bound():
    memo = Memo(100)
    for key in range(1000):
        memo.put(key, key)
    assert sum(memo.get(key) is not None for key in range(1000)) <= 100
