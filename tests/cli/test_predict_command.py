"""``geval predict``: outputs of language models, by the real command against a real server."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers import free_port, served

import geval_py
from geval_py.modelling import served_models

ROOT = Path(__file__).parents[2]
SERVER = ROOT / "tests" / "modelling" / "letters_server.py"
LINES = [("a tea", "to eat", "at"), ("tote", "a toe.", "to"), ("", "tea", "a"), ("ate\\n", "oat", "o."),
         ("to eat", "a", "tea"), ("e", "t", "a")]  # fmt: skip
NAME = "out-model=letters,k=6.tsv"
FORMS = "rest, uniform, unigram, document, ngram, ngram-both, kenlm:FILE, arpa:FILE, gguf:FILE, "
FORMS += "hf:NAME-OR-FOLDER, openai:URL#MODEL, chat:URL#MODEL"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_challenge(tmp_path)
    monkeypatch.setattr(served_models, "MAX_WAIT", 0.01)
    return tmp_path


def write_challenge(folder):
    (folder / "config.txt").write_text("--metric PerplexityHashed --precision 2 --in-header in-header.tsv\n")
    (folder / "in-header.tsv").write_text("LeftContext\tRightContext\n")
    for name in ("dev-0", "train"):
        (folder / name).mkdir()
        (folder / name / "in.tsv").write_text("".join(f"{left}\t{right}\n" for left, right, _ in LINES))
        (folder / name / "expected.tsv").write_text("".join(f"{word}\n" for _, _, word in LINES))


def server_of(port, *options):
    return served([sys.executable, str(SERVER), str(port), *options], port)


@pytest.fixture(scope="module")
def address():
    port = free_port()
    with server_of(port):
        yield f"openai:http://127.0.0.1:{port}/v1#letters"


def test_an_output_is_written_and_scored(here, geval, address):
    status, out, err = geval("predict", "-t", "dev-0", "--model", address, "--words", "6")
    first, figures = out.splitlines()
    assert (status, first, err) == (0, f"wrote `./dev-0/{NAME}`", "")
    score = geval_py.evaluate(".", "dev-0", output=NAME).score
    assert figures == f"PerplexityHashed {score:.2f}"  # too few lines to tune or to mix
    assert sorted(path.name for path in (here / "dev-0").iterdir()) == [
        "expected.tsv", "in.tsv", NAME.replace(".tsv", ".model.json"), NAME,
    ]  # fmt: skip
    kept = json.loads((here / "dev-0" / NAME.replace(".tsv", ".model.json")).read_text())
    assert (kept["model"], kept["words"], kept["right_tokens"]) == (address, 6, 0)
    assert geval("check", ".", "-t", "dev-0", "--strict")[0] == 0
    status, _, err = geval("predict", "-t", "dev-0", "--model", address, "--words", "6")
    assert (status, err) == (
        2, f"geval: `./dev-0/{NAME}` is there already, and is left as it is\n  --force writes over it\n"
    )  # fmt: skip


@pytest.mark.slow
def test_right_context_and_candidates_have_their_place_in_the_name(here, geval, address):
    words = ("--words", "6", "--right-tokens", "5", "--candidates", "3")
    status, out, _ = geval("predict", "-t", "dev-0", "--model", address, *words)
    assert (status, out.splitlines()[0]) == (0, "wrote `./dev-0/out-model=letters,k=6,right=5,candidates=3.tsv`")
    assert geval("predict", "-t", "dev-0", "--model", address, *words, "-o", "mine")[0] == 0
    unnamed = here / "dev-0" / "out-model=letters,k=6,right=5,candidates=3.tsv"
    assert (here / "dev-0" / "out-mine.tsv").read_bytes() == unnamed.read_bytes()
    assert geval("check", ".", "-t", "dev-0", "--strict")[0] == 0


@pytest.mark.slow
def test_a_challenge_needs_no_train(here, geval, address):
    for file in (here / "train").iterdir():
        file.unlink()
    (here / "train").rmdir()
    assert geval("predict", "-t", "dev-0", "--model", address, "--words", "6")[0] == 0
    message = "geval: a language model lists one word or more on a line, not 0\n"
    assert geval("predict", "-t", "dev-0", "--model", address, "--words", "0") == (2, "", message)
    status, _, err = geval("predict", "-t", "dev-0", "--model", address, "--candidates", "5")
    assert (status, err.splitlines()[0][:43]) == (1, "geval: No such set in the challenge: `./tra")


def test_a_chat_model_is_asked_and_the_method_kept(here, geval, monkeypatch):
    """By a template of one's own; the journal is of this template."""
    import httpx

    plain, asked = httpx.Client, []

    def answer(request):
        asked.append(json.loads(request.content)["messages"][0]["content"])
        return httpx.Response(200, json={"choices": [{"message": {"content": word}} for word in ("at", "at", "to")]})

    monkeypatch.setattr(httpx, "Client", lambda **more: plain(transport=httpx.MockTransport(answer), **more))
    (here / "ask.txt").write_text("Fill in: {left} ___ {right}")
    words = ("predict", "-t", "dev-0", "--model", "chat:http://here/v1#m", "--answers", "3", "-o", "m")
    assert geval(*words, "--template", "ask.txt")[0] == 0
    assert asked[0] == "Fill in: a tea ___ to eat"
    kept = json.loads((here / "dev-0" / "out-m.model.json").read_text())
    assert (kept["method"], kept["answers"], kept["template"]) == ("samples", 3, "Fill in: {left} ___ {right}")
    assert geval("check", ".", "-t", "dev-0", "--strict")[0] == 0
    assert (here / "dev-0" / "out-m.tsv").read_text().splitlines()[0] == "at:0.416667 to:0.208333 :0.375"


def test_contexts_without_spaces_are_noted(here, geval, address):
    (here / "dev-0" / "in.tsv").write_text("我们今天下午去公园\t一起散步然后回家吃饭\n" * 6)
    status, _, err = geval("predict", "-t", "dev-0", "--model", address, "--words", "6")
    assert (status, err) == (
        0, "geval: note: the contexts have no spaces between words, which a language model is asked for\n"
        "  split the texts into words\n",
    )  # fmt: skip


@pytest.mark.slow
def test_a_part_is_done_and_the_rest_later(here, geval, address):
    command = ("predict", "-t", "dev-0", "--model", address, "--words", "6")
    assert geval(*command, "--limit", "2")[1] == "2 of 6 items are done. Run the same command again to continue.\n"
    status, out, err = geval(*command, "--estimate", "--limit", "1")
    assert (status, err) == (0, "geval: note: 2 of 6 items are done already; this goes on behind them\n")
    assert out.splitlines()[0].startswith("1 item took ")
    assert out.splitlines()[1].startswith("the other 3 would take ")
    server, each, bill = out.splitlines()[2:5]
    assert server == "the server returns 8 alternatives, and takes 64 prompts per request"
    requests, tokens = re.fullmatch(r"([\d.]+) requests and ([\d,]+) tokens per gap", each).groups()
    assert (float(requests) < 50, bill) == (
        True, f"all 6 gaps would take about {6 * int(tokens.replace(',', '')):,} tokens",
    )  # fmt: skip
    assert geval(*command)[0] == 0
    whole = (here / "dev-0" / NAME).read_bytes()
    assert geval(*command, "--force", "--parallel", "1")[0] == 0
    assert (here / "dev-0" / NAME).read_bytes() == whole


def test_the_journal_of_other_work_is_left_as_it_is(here, geval, address):
    command = ("predict", "-t", "dev-0", "--model", address, "-o", "mine", "--limit", "2")
    assert geval(*command, "--words", "6")[0] == 0
    journal = here / "dev-0" / "out-mine.journal"
    before = journal.read_bytes()
    assert geval(*command, "--words", "10") == (
        2, "",
        "geval: `./dev-0/out-mine.journal` is of another model, input or options: words is 10, and was 6\n"
        "  --force begins anew\n",
    )  # fmt: skip
    assert journal.read_bytes() == before
    assert geval(*command, "--words", "10", "--force")[0] == 0
    assert "2 of 6 items are done already" in geval(*command, "--words", "10", "--force")[2]
    assert journal.read_bytes().startswith(before)  # it only grows
    journal.write_bytes(b'\xff\n"a:1"\n')
    assert geval(*command, "--words", "10")[2].splitlines()[0].endswith("options: version is 0.1.0, and was None")


def write_arpa(folder, geval, text="a tea at tea\nto eat a toe\n"):
    (folder / "text.txt").write_text(text * 3)
    assert geval("lm", "train", "-o", "2", "text.txt", "--arpa", "m.arpa", "--discount-fallback")[0] == 0


@pytest.mark.parametrize(
    ("model", "module"), [("arpa:no/m.arpa", ""), ("hf:m.arpa", "transformers"), ("foo:m.arpa", ""), ("m.arpa", "")]
)
def test_a_model_that_cannot_be_opened_leaves_nothing(here, geval, monkeypatch, model, module):
    write_arpa(here, geval)
    before = sorted((here / "dev-0").iterdir())
    if module:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    words = ("predict", "-t", "dev-0", "--words", "4")
    status, out, err = geval(*words, "--model", model)
    assert (status, out) in ((1, ""), (2, ""))
    assert "journal" not in err
    assert sorted((here / "dev-0").iterdir()) == before
    assert geval(*words, "--model", "arpa:m.arpa")[1].splitlines()[0] == "wrote `./dev-0/out-model=m,k=4.tsv`"


def test_force_keeps_the_gaps_of_another_model_until_it_has_one(here, geval):
    write_arpa(here, geval)
    command = ("predict", "-t", "dev-0", "--words", "4", "-o", "mine")
    assert geval(*command, "--model", "arpa:m.arpa", "--limit", "2")[0] == 0
    before = (here / "dev-0" / "out-mine.journal").read_bytes()
    assert geval(*command, "--model", "arpa:no.arpa", "--force")[0] == 1
    assert (here / "dev-0" / "out-mine.journal").read_bytes() == before
    assert geval(*command, "--model", "arpa:m.arpa")[2].startswith("geval: note: 2 of 6 items are done already")


@pytest.mark.parametrize(
    ("file", "what"), [("m.arpa", "model file"), ("dev-0/in.tsv", "test set"), ("train/expected.tsv", "training set")]
)
def test_a_journal_knows_its_files(here, geval, file, what):
    write_arpa(here, geval)
    command = ("predict", "-t", "dev-0", "--model", "arpa:m.arpa", "--words", "4")
    assert geval(*command, "--limit", "2")[0] == 0
    with (here / file).open("a") as changed:
        changed.write("\n")
    assert geval(*command) == (
        2, "",
        "geval: `./dev-0/out-model=m,k=4.journal` is of another model, input or options: "
        f"the {what} has changed\n  --force begins anew\n",
    )  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), [("m.arpa.gz", "arpa"), ("m.gguf", "gguf"), ("models", "hf")])
def test_a_file_without_the_kind_of_model(here, geval, name, kind):
    if kind == "hf":
        (here / name).mkdir()
    else:
        (here / name).write_text("")
    assert geval("predict", "-t", "dev-0", "--right-tokens", "5", "--model", name) == (
        2, "", f"geval: there is no model `{name}`\n  `{name}` is there: did you mean `{kind}:{name}`?\n"
    )  # fmt: skip


@pytest.mark.slow
def test_a_process_that_is_killed_goes_on_to_the_same_bytes(here, geval):
    port = free_port()
    command = ["predict", "-t", "dev-0", "--model", f"openai:http://127.0.0.1:{port}/v1#letters", "--words", "6"]
    with server_of(port, "--slow", "0.01"):
        process = subprocess.Popen([sys.executable, "-m", "geval_py", *command], stdout=subprocess.DEVNULL)
        journal = here / "dev-0" / NAME.replace(".tsv", ".journal")
        end = time.monotonic() + 60
        while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (here / "dev-0" / NAME).exists()
    with journal.open("ab") as file:
        file.write(b"half of a li")  # as a full disk leaves it
    with server_of(port):
        assert geval(*command)[0] == 0
        resumed = (here / "dev-0" / NAME).read_bytes()
        assert geval(*command, "--force")[0] == 0
    assert (here / "dev-0" / NAME).read_bytes() == resumed
    assert not journal.exists()


def test_two_processes_do_not_write_the_same_journal(here, geval, address):
    fcntl = pytest.importorskip("fcntl")
    with (here / "dev-0" / NAME.replace(".tsv", ".journal")).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert geval("predict", "-t", "dev-0", "--model", address, "--words", "6") == (
            2, "",
            f"geval: another process writes `./dev-0/{NAME.replace('.tsv', '.journal')}`; wait until it has ended\n",
        )  # fmt: skip


def test_an_arpa_file_predicts_by_the_left_context(here, geval):
    write_arpa(here, geval)
    status, out, _ = geval("predict", "-t", "dev-0", "--model", "arpa:m.arpa", "--words", "4")
    assert (status, out.splitlines()[0]) == (0, "wrote `./dev-0/out-model=m,k=4.tsv`")
    lines = (here / "dev-0" / "out-model=m,k=4.tsv").read_text().splitlines()
    assert lines[0].startswith("at:")  # behind "a tea"
    assert geval("check", ".", "-t", "dev-0", "--strict")[0] == 0
    assert geval("predict", "-t", "dev-0", "--model", "arpa:m.arpa")[0] == 0  # all words: no rest would be left
    assert geval("check", ".", "-t", "dev-0", "--strict")[0] == 0


@pytest.mark.parametrize(("words", "status", "message"), [
    ("", 2, "the model is missing\n  for example geval predict --model hf:gpt2 -t dev-0"),
    ("-m hf:gpt2", 2, "unrecognized arguments: -m hf:gpt2\n  did you mean --model?"),
    ("--model hf:", 2, f"`hf:` names no model\n  a model is {FORMS}"),
    ("--model gpt2", 2, f"there is no model `gpt2`\n  did you mean `hf:gpt2`? a model is {FORMS}"),
    ("--model gemma3:270m", 2, "there is no model `gemma3:270m`\n  did you mean "
        f"`chat:http://localhost:11434/v1#gemma3:270m`? a model is {FORMS}"),
    ("--model anthropic:claude", 2, "there is no model `anthropic:claude`\n  did you mean "
        "`chat:https://api.anthropic.com/v1#claude`?"),
    ("--model huggingface:gpt2", 2, "there is no model `huggingface:gpt2`\n  did you mean `hf:gpt2`?"),
    ("--model http://localhost:8000/v1#m", 2, "there is no model `http://localhost:8000/v1#m`\n  did you mean "
        "`openai:http://localhost:8000/v1#m`?"),
    ("--model opnai:gpt2", 2, f"there is no model `opnai:gpt2`\n  did you mean openai? a model is {FORMS}"),
    ("--model chat:http://here/v1 --right-tokens 5", 2, "`chat:http://here/v1` does not heed --right-tokens\n"
     "  it is for gguf:FILE, hf:NAME-OR-FOLDER, openai:URL#MODEL"),
    ("--model ngram --answers 5", 2, "`ngram` does not heed --answers\n  it is for chat:URL#MODEL"),
    ("--model ngram --right 5", 2, "no column 5 (--right)\n  there are LeftContext, RightContext"),
    ("--model gguf:no.gguf", 1, "No file with the model: `no.gguf`"),
    ("--model ngram -o a/b", 2, "-o `a/b` is a path: give a name, and --out-directory the folder"),
])  # fmt: skip
def test_what_cannot_be_done(here, geval, words, status, message):
    assert geval("predict", "-t", "dev-0", *words.split()) == (status, "", f"geval: {message}\n")


def test_surprisal_by_the_same_models(here, geval, address):
    (here / "text.txt").write_text("a tea\n\nto eat a\n")
    status, out, err = geval("lm", "surprisal", address, "text.txt")
    assert (status, err) == (0, "")
    assert [line.split("\t")[:3] for line in out.splitlines()[-5:]] == [
        ["1", "1", "a"], ["1", "2", "tea"], ["3", "1", "to"], ["3", "2", "eat"], ["3", "3", "a"],
    ]  # fmt: skip
