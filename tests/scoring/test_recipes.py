"""Mixed lines are the same from both kernels, to the byte."""

from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from geval_py import errors
from geval_py.scoring.kernel import rewriting
from geval_py.scoring.kernel.backends import WRAPPED
from geval_py.scoring.kernel.rewriting import Mixing

WORD = st.sampled_from(["", "", "a", "b", "ą", "ka:lo", "antidisestablishment", "\x00", "c\r", "the"])
PROBABILITY = st.floats(0, 1).map(repr)
NUMBER = PROBABILITY | st.floats(-30, 2).map("{:.4f}".format) | st.sampled_from(["0", "1", "1e-300", "0.1", "x"])
LINE = st.one_of(
    *(
        st.lists(st.tuples(WORD, n).map(":".join), min_size=1, max_size=6).map(" ".join)
        for n in (NUMBER, PROBABILITY)
    ),
    st.sampled_from(["-1 -1", "-1 -2 -3 -4", "a:0.5  b:0.5", "", "a:0.0999997 b:0.9000003", "a:0.5 b:0.25 :0.25"]),
)
SHARES = st.sampled_from([{}, {"the": 0.25, "a": 0.125}, {"b": 1.0}])


def mixings(outputs):
    """Recipes for so many outputs, with and without frequent words and edges."""
    row = (
        st.lists(st.sampled_from([0.0, 0.1, 0.25, 1.0]), min_size=2 * outputs + 2, max_size=2 * outputs + 2)
        .filter(any)
        .map(lambda weights: tuple(weight / sum(weights) for weight in weights))
    )
    edges = st.sampled_from([(), (0.3,), (0.1, 0.5)])
    return edges.flatmap(lambda ends: st.builds(
        Mixing, weights=st.tuples(*[row] * (len(ends) + 1)), edges=st.just(ends), frequent=SHARES,
        bits=st.sampled_from([2, 10]),
    ))  # fmt: skip


def rewritten(rewrite_lines, blocks, recipe):
    try:
        return rewrite_lines(blocks, 7, recipe)
    except errors.MalformedLineError as error:
        return str(error)


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(st.tuples(LINE, LINE), max_size=4), mixings(1), mixings(2))
def test_both_backends_write_the_same(lines, of_first, of_both):
    first, second = ("".join(f"{pair[place]}\n" for pair in lines).encode() for place in range(2))
    for blocks, recipe in (([first], of_first), ([first, second], of_both)):
        assert rewritten(WRAPPED["rewrite_lines"], blocks, recipe) == rewritten(
            rewriting.rewrite_lines, blocks, recipe
        )


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(st.one_of(
    st.floats(0, 1), st.floats(0, 1).map(lambda x: float(f"{x:.6g}")),
    st.integers(1, 999999).map(lambda n: (n + 0.5) / 2**20),
), min_size=1, max_size=30))  # fmt: skip
def test_masses_of_all_sizes_are_written_the_same(masses):
    total = sum(masses) or 1.0
    block = " ".join(f"w{n}:{mass / total**0.5!r}" for n, mass in enumerate(masses)).encode() + b"\n"
    recipe = Mixing(weights=((0.0, 0.7, 0.3, 0.0, 0.0, 0.0),))
    blocks = [block, b"b:0.5 :0.5\n"]
    assert rewritten(WRAPPED["rewrite_lines"], blocks, recipe) == rewritten(rewriting.rewrite_lines, blocks, recipe)
