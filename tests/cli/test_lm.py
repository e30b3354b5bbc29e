"""``geval lm``: train, perplexity, surprisal."""

import io

import pytest

TEXT = "a b c\na b\n\nb c a a\nc\na b c d\n"
OTHER = "a b c\nd a\n\nx a y b c\n c  c\n"
UNKNOWN = "geval: note: 2 of 17 tokens are OOVs, with the probability of <unk>\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "other.txt").write_text(OTHER)
    return tmp_path


@pytest.fixture
def model(geval):
    assert geval("lm", "train", "text.txt", "-o", "2", "--arpa", "m.arpa", "--discount-fallback")[0] == 0


OUTPUTS = {  # KenLM's query: 5.4324, 4.694, 2, 17 on the same text and model; and what query -v word says of each word
    "perplexity m.arpa other.txt -p 4":
     "Perplexity including OOVs:\t5.4324\nPerplexity excluding OOVs:\t4.6940\nOOVs:\t2\nTokens:\t17\n",
    "perplexity m.arpa other.txt --sentences -p 3": "-1.694\t0\n-2.868\t0\n-0.654\t0\n-4.926\t2\n-2.353\t0\n",
    "surprisal m.arpa other.txt -p 3":
     "1\t1\ta\t1.683\n1\t2\tb\t1.422\n1\t3\tc\t1.158\n2\t1\td\t3.437\n2\t2\ta\t4.022\n4\t1\tx\t4.022\n"
     "4\t2\ta\t3.022\n4\t3\ty\t4.022\n4\t4\tb\t2.774\n4\t5\tc\t1.158\n5\t1\tc\t2.677\n5\t2\tc\t3.774\n",
}  # fmt: skip


@pytest.mark.parametrize(("words", "output"), OUTPUTS.items(), ids=OUTPUTS)
def test_output(words, output, geval, model):
    assert geval("lm", *words.split()) == (0, output, UNKNOWN if "perplexity" in words else "")


def test_the_options_of_lmplz(geval):
    out = geval(
        "lm", "train", "text.txt", "-o", "3", "--prune", "0", "0", "1", "--discount-fallback", "0.4", "0.9",
        "--interpolate-unigrams", "1", "--vocab-pad", "100", "--exact-discounts", "--arpa", "m.arpa",
    )[1]  # fmt: skip
    assert [line.split("\t") for line in out.splitlines()] == [
        ["1", "7", "7", "0.2", "1.7", "3"], ["2", "13", "13", "0.714286", "0.928571", "3"],
        ["3", "11", "2", "0.4", "0.9", "0.9"],  # <s> a b, and a b c
    ]  # fmt: skip


def test_a_vocabulary_and_marks_in_the_text(geval, folder):
    (folder / "words").write_text("a\n\tb\r\n")
    (folder / "text.txt").write_text("a <s> b c\n")
    words = ("lm", "train", "text.txt", "-o", "2", "--discount-fallback", "--vocabulary", "words", "--arpa", "m.arpa")
    status, _, err = geval(*words)
    assert status == 1
    assert err.startswith("geval: Line 1: Unexpected data [<s> in the text]\n")
    assert geval(*words, "--skip-symbols")[1].splitlines()[0] == "1\t6\t5\t0.5\t1\t1.5"


@pytest.mark.parametrize("text", ["春眠不觉晓", "いろはにほへと", "ไม่มีปัญหา"])
def test_a_text_without_spaces_between_words(geval, folder, text):
    (folder / "text.txt").write_text("".join(f"{text * 3}\n" for _ in range(9)))
    status, _, err = geval("lm", "train", "text.txt", "-o", "2", "--counts", "add-one", "--arpa", "t.arpa")
    assert status == 0
    assert err == (
        "geval: note: `text.txt` has no spaces between words: each run of letters counts as one word\n"
        "  split this text and all others into words (jieba, MeCab and PyThaiNLP can do that) or into letters\n"
    )
    for fine in (f"{text[:2]} {text[2:]}\n", "https://example.org/a/long/address " * 9 + "\n"):
        (folder / "text.txt").write_text(fine * 9)
        assert geval("lm", "train", "text.txt", "-o", "2", "--counts", "add-one", "--arpa", "t.arpa")[2] == ""


def test_unigrams_that_leave_nothing_to_share(geval, folder):
    (folder / "text.txt").write_text("a b c\n")
    words = ("lm", "train", "text.txt", "--arpa", "t.arpa", "--vocab-pad", "9", "--interpolate-unigrams")
    assert geval(*words, "0") == (2, "", "geval: --vocab-pad is the number of words that share the probability that unigrams leave over,\n"
        "  and --interpolate-unigrams 0 gives all of it to <unk>: remove one of the two options\n")  # fmt: skip
    assert geval(*words, "1", "--discount-fallback")[0] == 0


def test_a_text_that_is_not_utf8(geval, folder):
    (folder / "text.txt").write_bytes(b"a\ncaf\xe9\n")
    err = geval("lm", "train", "text.txt", "-o", "1", "--discount-fallback", "--arpa", "m.arpa")[2]
    assert "geval: note: `text.txt` is not UTF-8, first in line 2; its bytes are taken as they are\n" in err
    assert b"caf\xe9" in (folder / "m.arpa").read_bytes()


def test_a_model_without_unk_is_said(geval, model, folder):
    text = (folder / "m.arpa").read_text().replace("ngram 1=7", "ngram 1=6")
    (folder / "m.arpa").write_text("".join(line for line in text.splitlines(True) if "<unk>" not in line))
    err = geval("lm", "perplexity", "m.arpa", "other.txt")[2]
    message = "geval: note: `m.arpa` has no <unk>: the log10 probability of unknown words is -100, as in KenLM\n"
    assert err == message + "geval: note: 2 of 17 tokens are OOVs\n"


def test_surprisal_as_csv_and_of_standard_input(geval, model, monkeypatch):
    head, *rows = geval("lm", "surprisal", "m.arpa", "other.txt", "--format", "csv")[1].splitlines()
    assert (head, len(rows)) == ("line,position,word,surprisal", 12)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n\xe9 a\vb")))
    assert geval("lm", "surprisal", "m.arpa", "-p", "0")[1] == "2\t1\t\ufffd\t4\n2\t2\ta\t3\n2\t3\tb\t1\n"


def test_an_empty_text_has_no_surprisal(geval, model, folder):
    (folder / "empty").write_bytes(b"")
    assert geval("lm", "surprisal", "m.arpa", "empty") == (1, "", "geval: The text file is empty: `empty`\n")


TRAIN = ("train", "text.txt", "--arpa", "m.arpa")
WRONG = {
    "no command": ((),
     "a command of geval lm is missing\n  the commands are train, perplexity, surprisal"),
    "a command of KenLM": (("query", "m.arpa"),
     "there is no command `geval lm query`\n  did you mean perplexity? the commands are train, perplexity, surprisal"),
    "an option of KenLM": ((*TRAIN, "--limit_vocab_file", "words"),
     "unrecognized arguments: --limit_vocab_file words\n  did you mean --vocabulary?"),
    "two texts": ((*TRAIN, "--challenge", "c"), "--challenge takes the place of a text: leave one of them out"),
    "a set of no challenge": ((*TRAIN, "-t", "dev-0"), "-t, --left and --right go with --challenge"),
    "plain": ((*TRAIN, "--counts", "add-one", "--prune", "1"), "plain counts take no options of Kneser-Ney: leave out --counts, or these"),
    "a text behind --prune": (("train", "--prune", "0", "0", "1", "text.txt"),
     "argument --prune: 'text.txt' is not a whole number: write the text first, geval lm train TEXT --prune 0 0 1\n"
     "  geval lm train --help shows the options"),
    "lmplz's folder": ((*TRAIN, "-T", "/tmp"),
     "Unknown tokenizer: /tmp\n  there are minimalistic, character-by-character, 13a, v14; no folder is needed"),
    "lmplz's memory": ((*TRAIN, "-S", "80%"),
     "unrecognized arguments: -S 80%\n  did you mean --arpa FILE, without -S: a model is trained in memory?"),
    "lmplz's text": (("train", "--text", "text.txt", "--arpa", "m.arpa"),
     "unrecognized arguments: --text\n  did you mean --arpa FILE TEXT?"),
    "a text before its model": (("perplexity", "text.txt", "m.arpa"),
     "the model comes before the text\n  write m.arpa text.txt"),
    "discounts": ((*TRAIN, "--discount-fallback", "1", "1", "1", "1"),
     "--discount-fallback takes up to 3 discounts; 4 were given"),
    "a discount above its count": ((*TRAIN, "--discount-fallback", "1.5"),
     "the discount 1.5 of n-grams with the count 1 is more than 1\n"
     "  --discount-fallback takes up to 3 numbers, each at most 1, 2 and 3; the last one is repeated"),
    "a discount": ((*TRAIN, "--discount-fallback", "7"),
     "argument --discount-fallback: '7' is not a discount, a number from 0 to 3\n"
     "  geval lm train --help shows the options"),
    "a seed alone": (("perplexity", "m.arpa", "other.txt", "--seed", "1"), "--seed goes with --bootstrap"),
    "sentences": (("perplexity", "m.arpa", "other.txt", "--sentences", "-B", "9"),
     "--sentences has neither intervals nor another format"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), WRONG.values(), ids=WRONG)
def test_a_wrong_command_line(words, message, geval):
    assert geval("lm", *words) == (2, "", f"geval: {message}\n")


@pytest.mark.parametrize(("words", "message"), [
    (["train", "--arpa", "m.arpa"], "a text is missing\n  name its file, or - for standard input"),
    (["train", "text.txt"], "the file for the model is missing: --arpa FILE (-: standard output)"),
    (["perplexity", "m.arpa"], "a text is missing\n  name its file, or - for standard input"),
])  # fmt: skip
def test_files_that_are_missing_on_a_terminal(words, message, geval, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert geval("lm", *words, terminal=True) == (2, "", f"geval: {message}\n")


@pytest.fixture
def piped(geval, monkeypatch):
    """Run a command with a text on standard input; return standard output and standard error."""

    def run(text, *words):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        status, out, err = geval("lm", *words)
        assert status == 0
        return out, err

    return run


def test_pipes_as_of_lmplz_and_query(geval, model, piped, folder):
    out, err = piped(TEXT, "train", "-o", "2", "--discount-fallback", "--skip-symbols")
    assert out == (folder / "m.arpa").read_text()
    assert err == "geval: note: the counts give no discounts of order 2: the fall-back was taken\n"
    whole = piped("", "perplexity", "m.arpa", "other.txt")
    assert piped(OTHER, "perplexity", "m.arpa") == whole


@pytest.fixture
def challenge(folder):
    for name, rows in {"train": ["a b\tc d\tc", "c d\ta\ta b"], "dev-0": ["b a\ta c\td"]}.items():
        (folder / name).mkdir()
        cells = [row.split("\t") for row in rows]
        (folder / name / "in.tsv").write_text("".join(f"7\t1850\t{left}\t{right}\n" for left, right, _ in cells))
        (folder / name / "expected.tsv").write_text("".join(f"{word}\n" for _, _, word in cells))
    (folder / "in-header.tsv").write_text("FileId\tYear\tLeftContext\tRightContext\n")
    (folder / "config.txt").write_text("--metric LogLossHashed10 --in-header in-header.tsv\n")


def test_the_texts_of_a_challenge(geval, challenge, folder, piped, model):
    text = "a b c c d\nc d a b a\n"
    options = ("-o", "2", "--counts", "add-one")
    assert piped("", "train", "--challenge", ".", *options) == piped(text, "train", *options)
    perplexity = ("perplexity", "m.arpa", "--challenge", ".", "-t")
    assert piped("", *perplexity, "dev-0") == piped("b a d a c\n", "perplexity", "m.arpa")
    assert piped("", *perplexity, "train") == piped(text, "perplexity", "m.arpa")
    swapped = ("--left", "RightContext", "--right", "LeftContext")
    assert piped("", *perplexity, "dev-0", *swapped) != piped("", *perplexity, "dev-0")
    (folder / "train" / "expected.tsv").unlink()
    assert geval("lm", *perplexity, "train") == (
        1, "", "geval: No texts without the input and the answers: `./train`\n",
    )  # fmt: skip


def test_a_table_is_noted(geval, challenge, piped):
    words = ("train", "train/in.tsv", "-o", "1", "--counts", "add-one")
    message = "geval: note: `train/in.tsv` is a table of 4 columns: all count as text, ids and years too\n"
    assert piped("", *words)[1] == message + "  --challenge DIR reads the contexts and the answers of a challenge\n"
    assert piped("a\tb\nc\n", "train", "-o", "1", "--counts", "add-one")[1] == ""


LECTURE = ("--no-sentence-marks", "--counts", "maximum-likelihood")


@pytest.mark.parametrize(("counts", "text", "perplexity"), [  # Jurafsky and Martin, Speech and Language Processing, 3.2
    ({"red": 1, "green": 1, "blue": 1}, "red red red red blue", "3.0000"),
    ({"red": 8, "green": 1, "blue": 1}, "red red red red blue", "1.8946"),
    (dict.fromkeys("0123456789", 1), "0 0 0 0 0 3 0 0 0 0", "10.0000"),
    (dict.fromkeys("0123456789", 1) | {"0": 91}, "0 0 0 0 0 3 0 0 0 0", "1.7253"),
])  # fmt: skip
def test_perplexities_of_a_textbook(counts, text, perplexity, piped, folder):
    lines = "".join(f"{word}\n" * count for word, count in counts.items())
    (folder / "m.arpa").write_text(piped(lines, "train", "-o", "1", *LECTURE)[0])
    out, _ = piped(f"{text}\n", "perplexity", "m.arpa", "--no-sentence-marks", "-p", "4")
    assert out.startswith(f"Perplexity including OOVs:\t{perplexity}\n")
    assert piped(f"{text}\n", "surprisal", "m.arpa")[0].count("\n") == len(text.split())


def test_a_text_is_split_into_tokens(geval, piped):
    words = ("train", "-o", "2", "--counts", "add-one")
    assert piped('It rains.\n"Why?"\n', *words, "-T", "13a") == piped('It rains .\n" Why ? "\n', *words)
    piped('It rains.\n"Why?"\n', *words, "--arpa", "m.arpa")
    assert piped('It rains.\n"Why?"\n', "perplexity", "m.arpa", "-T", "13a")[0].endswith("Tokens:\t9\n")
