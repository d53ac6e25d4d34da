"""Where the objects of a lineage stand in its picture."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as some

from frontend.graph_layout import Pair, layered
from frontend.svg import Stop, flow

PAIRS = some.lists(some.tuples(some.integers(1, 9), some.integers(1, 9)), max_size=24)


def test_an_object_stands_right_of_all_that_it_reads() -> None:
    """The table 4 is read by 3, which 1 reads itself and by 2: it is left of both, and is there once."""
    layers = layered(1, reads=[(2, 1), (3, 1), (3, 2), (4, 3)], readers=[(1, 5), (5, 6), (1, 6)])
    assert [[slot for slot in column if isinstance(slot, int)] for column in layers.columns] == [
        [4], [3], [2], [1], [5], [6],
    ]  # fmt: skip
    assert len(layers.lines) == 7
    assert layers.columns[2] == [2, (3, 1)], "the line from 3 to 1 passes below 2"


def test_what_reads_itself_by_others_is_drawn_without_the_line_back() -> None:
    layers = layered(1, reads=[(2, 1), (1, 2)], readers=[(1, 2), (2, 1)])
    assert (layers.columns, layers.lines) == ([[2], [1]], [[(0, 0), (1, 0)]])
    assert layered(1, reads=[(1, 1)], readers=[(1, 1)]).columns == [[1]]


@given(reads=PAIRS, readers=PAIRS)
def test_lines_lead_to_the_right_and_through_no_object(reads: list[Pair], readers: list[Pair]) -> None:
    layers = layered(1, reads, readers)
    objects = [slot for column in layers.columns for slot in column if isinstance(slot, int)]
    assert 1 in objects and len(set(objects)) == len(objects)
    assert all(any(isinstance(slot, int) for slot in column) for column in layers.columns)
    for line in layers.lines:
        slots = [layers.columns[column][row] for column, row in line]
        assert (slots[0], slots[-1]) in {*reads, *readers}
        assert all(after[0] == before[0] + 1 for before, after in pairwise(line))
        assert all(slot == (slots[0], slots[-1]) for slot in slots[1:-1])


def test_a_picture_has_room_for_lines_that_pass_below_it() -> None:
    one, other, between = Stop("table", "one"), Stop("view", "other"), Stop("view", "between")
    drawn = flow([[one], [between, None], [other]], [[(0, 0), (1, 0), (2, 0)], [(0, 0), (1, 1), (2, 0)]])
    assert drawn.count("<rect") == 3 and drawn.count('<path class="link') == 2
    assert 'height="108"' in drawn
