"""The metrics of annotations and clippings, computed naively from their definitions.

Annotations are sets of positions, rectangles are sets of points, and all one-to-one matchings are tried.
"""

from collections import Counter
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from scorers import close, score

from geval_py.errors import MalformedLineError
from geval_py.scoring.metrics.spans import read_segments

PROPERTY = settings(deadline=None, derandomize=True, max_examples=examples(60))


def ratio(part, whole):
    return part / whole if whole else 1.0


def naive_f(beta, precision, recall):
    below = beta * beta * precision + recall
    return (1 + beta * beta) * precision * recall / below if below else 0.0


def best_of_all(scores, wanted, given_):
    """Return the matching with the greatest sum among all one-to-one matchings."""
    few, many = sorted((wanted, given_))
    chosen = [list(zip(range(few), places, strict=True)) for places in permutations(range(many), few)]
    pairs = [[pair if wanted <= given_ else pair[::-1] for pair in one] for one in chosen]
    return max(pairs, key=lambda one: sum(scores[i][j] for i, j in one))


def naive_positions(written):
    spans = [span.partition("-") for span in written.split(",") if span]
    return frozenset(n for low, _, high in spans for n in range(int(low), int(high or low) + 1))


def naive_annotations(line):
    parts = [token.split(":") for token in line.split()]
    return [(label, naive_positions(spans), float(p[0]) if p else 1.0) for label, spans, *p in parts]


def jaccard(one, other):
    return ratio(len(one[1] & other[1]), len(one[1] | other[1])) if one[0] == other[0] else 0.0


def naive_soft_f(beta, pairs):
    right, wanted, given_ = 0.0, 0, 0
    for output, expected in pairs:
        ours, theirs = naive_annotations(output), naive_annotations(expected)
        scores = [[jaccard(one, other) for other in ours] for one in theirs]
        right += sum(scores[i][j] for i, j in best_of_all(scores, len(theirs), len(ours)))
        wanted, given_ = wanted + len(theirs), given_ + len(ours)
    return naive_f(beta, ratio(right, given_), ratio(right, wanted))


def naive_flc_f(beta, pairs):
    found, right, wanted, given_ = 0.0, 0.0, 0, 0
    for output, expected in pairs:
        ours, theirs = naive_annotations(output), naive_annotations(expected)
        wanted, given_ = wanted + len(theirs), given_ + len(ours)
        if any(a[0] == b[0] and a[1] & b[1] for n, a in enumerate(ours) for b in ours[:n]):
            continue
        same = [(a[1], b[1]) for a, b in product(theirs, ours) if a[0] == b[0]]
        found += sum(ratio(len(a & b), len(a)) for a, b in same)
        right += sum(ratio(len(a & b), len(b)) for a, b in same)
    return naive_f(beta, ratio(right, given_), ratio(found, wanted))


LABEL = st.sampled_from("ab")
SPAN = st.tuples(st.integers(0, 12), st.integers(-1, 5)).map(lambda ends: f"{ends[0]}-{max(0, sum(ends))}")
POSITIONS = st.lists(st.one_of(SPAN, st.integers(0, 12).map(str)), max_size=3).map(",".join)
ANNOTATION = st.tuples(LABEL, POSITIONS).map(":".join)
PROBABILITY = st.integers(0, 8).map(lambda n: f":{n / 8}")
GIVEN = st.tuples(ANNOTATION, st.one_of(st.just(""), PROBABILITY)).map("".join)
ANNOTATIONS = st.lists(
    st.tuples(*(st.lists(of, max_size=4).map(" ".join) for of in (GIVEN, ANNOTATION))), min_size=1, max_size=3
)
BETA = st.sampled_from([1, 2, 0.5])


def lines_of(pairs):
    return tuple(map(list, zip(*pairs, strict=True)))


@PROPERTY
@given(BETA, ANNOTATIONS)
def test_soft_f_is_that_of_sets_and_all_matchings(beta, pairs):
    assert score(f"Soft-F{beta}", *lines_of(pairs)) == close(naive_soft_f(beta, pairs))


@PROPERTY
@given(BETA, ANNOTATIONS)
def test_flc_f_is_that_of_sets(beta, pairs):
    assert score(f"FLC-F{beta}", *lines_of(pairs)) == close(naive_flc_f(beta, pairs))


@PROPERTY
@given(st.lists(st.tuples(LABEL, POSITIONS).map(":".join), max_size=4))
def test_segments_may_not_overlap(segments):
    found = [naive_positions(segment.partition(":")[2]) for segment in segments]
    line = " ".join(segments)
    if sum(map(len, found)) == len(frozenset().union(*found)):
        assert [region.size for region in read_segments(line, 1)] == list(map(len, found))
    else:
        with pytest.raises(MalformedLineError) as raised:
            read_segments(line, 1)
        caught = raised.value
        assert caught.reason == "Overlapping segments"
        assert line[caught.column - 1 :].startswith(caught.token)


SQUARE = st.tuples(*[st.integers(0, 4)] * 4).map(
    lambda c: f"{min(c[0], c[2])},{min(c[1], c[3])},{max(c[0], c[2])},{max(c[1], c[3])}"
)
PAGE = st.sampled_from(["", "", "1/", "01/", "2/"])
RECTANGLE = st.tuples(st.sampled_from(["", "a:", "b:"]), PAGE, SQUARE).map("".join)
RECTANGLES = st.lists(
    st.tuples(
        st.lists(st.tuples(RECTANGLE, st.one_of(st.just(""), PROBABILITY)).map("".join), max_size=4).map(" ".join),
        st.lists(RECTANGLE, max_size=4).map(" ".join),
    ),
    min_size=1,
    max_size=3,
)


def naive_rectangle(token):
    """Return label and page, the points and the probability of an output's rectangle."""
    label, rest = token.split(":", 1) if token[0].isalpha() else (None, token)
    rest, _, probability = rest.partition(":")
    page, slash, corners = rest.rpartition("/")
    x0, y0, x1, y1 = map(int, corners.split(","))
    points = frozenset(product(range(x0, x1 + 1), range(y0, y1 + 1)))
    return (label, int(page) if slash else None), points, float(probability or 1)


def naive_rectangles(line):
    return list(map(naive_rectangle, line.split()))


def naive_soft_2d_f(beta, pairs):
    scores = []
    for output, expected in pairs:
        ours = Counter((of, point) for of, points, p in naive_rectangles(output) if p >= 0.5 for point in points)
        theirs = Counter((of, point) for of, points, _ in naive_rectangles(expected) for point in points)
        common = (ours & theirs).total()
        scores.append(naive_f(beta, ratio(common, ours.total()), ratio(common, theirs.total())))
    return sum(scores) / len(scores)


@PROPERTY
@given(BETA, RECTANGLES)
def test_soft_2d_f_is_that_of_points(beta, pairs):
    assert score(f"Soft2D-F{beta}", *lines_of(pairs)) == close(naive_soft_2d_f(beta, pairs))


def naive_clippeu(pairs):
    right, wanted, given_ = 0, 0, 0
    for output, expected in pairs:
        ours = naive_rectangles(output)
        corners = [
            tuple(map(int, token.rpartition("/")[2].split(",")))
            if "/" in token
            else tuple(map(int, token.split(",")))
            for token in output.split()
        ]
        theirs = []
        for token in expected.split():
            place, _, margin = token.rpartition("/")
            ends = tuple(map(int, place.rpartition("/")[2].split(",")))
            theirs.append((naive_rectangle(place)[0], ends, int(margin)))
        scores = [
            [
                float(page == one[0] and all(abs(a - b) <= margin for a, b in zip(ends, own, strict=True)))
                for one, own in zip(ours, corners, strict=True)
            ]
            for page, ends, margin in theirs
        ]
        right += sum(scores[i][j] for i, j in best_of_all(scores, len(theirs), len(ours)))
        wanted, given_ = wanted + len(theirs), given_ + len(ours)
    return naive_f(2, ratio(right, given_), ratio(right, wanted))


CLIPPING = st.tuples(PAGE, SQUARE).map("".join)
MARGIN = st.integers(0, 3).map(lambda margin: f"/{margin}")


@PROPERTY
@given(
    st.lists(
        st.tuples(
            st.lists(CLIPPING, max_size=4).map(" ".join),
            st.lists(st.tuples(CLIPPING, MARGIN).map("".join), max_size=4).map(" ".join),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_clippeu_is_that_of_all_matchings(pairs):
    assert score("ClippEU", *lines_of(pairs)) == close(naive_clippeu(pairs))
