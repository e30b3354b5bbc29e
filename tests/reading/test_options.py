"""GEval's options: from the command line, from config.txt, and what is refused."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geval_py.cli import parse
from geval_py.errors import ConfigError, UnreadableFileError, UsageError
from geval_py.reading.challenge import Challenge
from geval_py.reading.config import IGNORED, NOT_AVAILABLE, OPTIONS, SUBMIT, Settings, Task, config_task, read_config

PROPERTY = settings(deadline=None, derandomize=True)
SEE_HELP = "\n  geval --help shows the options"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The current directory: without a config.txt unless a test writes one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def config(here):
    """Write config.txt; gives nothing."""
    return (here / "config.txt").write_text


def both(**values):
    """What is scored, and how it is shown, from values by field."""
    return [vars(kind(**{n: v for n, v in values.items() if n in kind.defaults})) for kind in (Task, Settings)]


def parse_task(words):
    return parse(words)[0]


def understood(words):
    """The same as :func:`both` gives, of words; what follows from the mode is tested by itself."""
    task, settings = parse(words)
    return [vars(task) | {"needs_items": False}, vars(settings)]


def refused(*words):
    with pytest.raises(UsageError) as caught:
        parse(words)
    assert caught.value.exit_status == 2
    return str(caught.value)


GIVEN = {
    "-t dev-0": {"test_name": "dev-0"},
    "-tdev-0 -e a -i b": {"test_name": "dev-0", "expected_file": "a", "input_file": "b"},
    "--out-directory a --expected-directory b": {"out_directory": "a", "expected_directory": "b"},
    "--out-file http://example.org/a=b --out-file=out-a=1.tsv": {"out_files": ("http://example.org/a=b",
     "out-a=1.tsv")},
    "-m A --metric B -mC": {"metrics": ("A", "B", "C")},
    "-a A --alt-metric B --select-metric A": {"alt_metrics": ("A", "B"), "select_metrics": ("A",)},
    "-m LogLossHashed:N<a>s<b><c>": {"metrics": ("LogLossHashed:N<a>s<b><c>",)},
    "--in-header a --out-header b": {"in_header": "a", "out_header": "b"},
    "-p0 --show-as-percentage": {"precision": 0, "percentage": True},
    "--precision 10 --format json --threads 4": {"precision": 10, "format": "json", "threads": 4},
    "-lsp2": {"line_by_line": True, "sort": True, "precision": 2},
    "-lrtdev-0": {"line_by_line": True, "reverse_sort": True, "test_name": "dev-0"},
    "-%p2": {"percentage": True, "precision": 2},
    "--tokenizer character-by-character": {"tokenizer": "character-by-character"},
    "-jT 13a": {"tokenizer": "13a", "just_tokenize": True},
    "-h": {"help": True},
    "-v": {"version": True},
    "--list-metrics": {"list_metrics": True},
    # the later one wins
    "-o a --out-file b -ot": {"out_files": ("a", "b", "t")},
    "--select-metric a --select-metric b": {"select_metrics": ("a", "b")},
}  # fmt: skip


@pytest.mark.parametrize(("words", "values"), GIVEN.items(), ids=GIVEN)
def test_options(words, values):
    assert understood(words.split()) == both(**values)


UNKNOWN = {
    "--metrics": "did you mean --metric?", "--line_by_line": "did you mean --line-by-line?",
    "--test": "did you mean --test-name?",
    # long options are not abbreviated
    "--prec": "did you mean --precision?", "--xyzzy": "geval --help shows the options",
    "-x": "geval --help shows the options", "out.tsv": "did you mean -o out.tsv?",
    "out-a.tsv.xz": "did you mean -o out-a.tsv.xz?", "compare": "did you mean geval compare?",
    "folder": "did you mean -t folder?",
}  # fmt: skip


@pytest.mark.parametrize(("word", "advice"), UNKNOWN.items(), ids=UNKNOWN)
def test_unknown_options(word, advice, here):
    """GEval 1.42.2, --metrics LogLossHashed."""
    (here / "folder").mkdir()
    kind = "option" if word.startswith("-") else "argument"
    assert refused("-t", "dev-0", word, "--metrics") == f"Invalid {kind} `{word}'\n  {advice}"  # the first is named


BROKEN = {
    "no value": (["-t"], f"argument -t/--test-name: expected one argument{SEE_HELP}"),
    "an option for a value": (["-o", "-l"], f"argument -o/--out-file: expected one argument{SEE_HELP}"),
    "precision is a word": (["-p", "two"], f"argument -p/--precision: 'two' is not a whole number{SEE_HELP}"),
    "precision is in other digits": (["-p٢"], f"argument -p/--precision: '٢' is not a whole number{SEE_HELP}"),
    "precision is huge": (["-p", "1234567"],
     f"argument -p/--precision: 1234567 digits are too many; a double has less than 1100{SEE_HELP}"),
    "two test sets": (["-t", "dev-0", "--test-name=dev-1"],
     f"argument -t/--test-name: given twice: dev-0 and dev-1; give one{SEE_HELP}"),
    "two files of answers": (["-ea", "-e", "b"],
     f"argument -e/--expected-file: given twice: a and b; give one{SEE_HELP}"),
    "no threads": (["--threads", "0"], f"argument --threads: '0' is not a whole number from 1 to 9999{SEE_HELP}"),
    "a value for a switch": (["--line-by-line=yes"],
     f"argument -l/--line-by-line: ignored explicit argument 'yes'{SEE_HELP}"),
    "an unknown tokenizer": (["-T", "minimalist"], "Unknown tokenizer: minimalist\n"
     "  did you mean minimalistic? there are minimalistic, character-by-character, 13a, v14"),
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_command_line(words, message):
    assert refused(*words) == message


def test_what_is_refused_is_safe_to_show():
    formats = "'text', 'json', 'csv', 'markdown', 'latex', 'html'"
    message = f"argument --format: invalid choice: 'xml' (choose from {formats}){SEE_HELP}"
    assert refused("--format", "xml") == message
    assert refused("--\x1b[31m") == "Invalid option `--\\x1b[31m'\n  geval --help shows the options"
    assert "\x1b" not in refused("-p", "\x1b")


SUBMITTING = {
    "--submit": "--submit", "-S": "--submit", "--token=x": "--token", "--gonito-host example.org": "--gonito-host",
}  # fmt: skip


@pytest.mark.parametrize(("words", "name"), SUBMITTING.items(), ids=SUBMITTING)
def test_submitting_is_done_by_others(words, name):
    assert refused("-t", "dev-0", *words.split()) == (
        f"{name} is not available in geval-py: it is for Gonito servers, which fetch a branch\n"
        "  geval submit FILE --board URL sends an output to the server of a board, with the token in GEVAL_BOARD_TOKEN;\n"
        "  for Gonito, commit the output and run git push"
    )


@pytest.mark.parametrize("words", ["--train SimpleMixEnsemble", "--infer=model.yaml", "-l --infer model.yaml"])
def test_gevals_ensembles_are_named(words):
    name = words.removeprefix("-l ").replace("=", " ").split()[0]
    assert refused("-t", "dev-0", *words.split()) == (
        f"{name} is not available in geval-py: in GEval it is for models that choose one of several outputs for each line\n"
        "  geval mix mixes outputs; geval baseline and geval lm train language models"
    )


USELESS = {
    "--init": ("-o x", "-i x", "--in-header x", "--out-header x", "--out-directory x", "--threads 2"),
    "--validate": ("-t x", "-o x", "-i x", "--out-directory x", "-p 2", "-%"),
}


@pytest.mark.parametrize(("mode", "words"), [(mode, words) for mode in USELESS for words in USELESS[mode]])
def test_what_makes_no_sense_with_init_and_validate(mode, words):
    """GEval 1.42.2 ignores it."""
    name = next(option.long_name for option in OPTIONS.values() if words.split()[0] in option.names)
    assert refused(mode, *words.split()) == f"{name} has no effect with {mode}: leave it out"


MODE_ERRORS = {
    "-lsr": "--sort shows the worst lines first, --reverse-sort the best: take one",
    "--bootstrap 0": "the number of bootstrap samples is at least 1",
    "--validate --init": "--init and --validate are different modes: take one",
    "--validate -l": "--line-by-line and --validate are different modes: take one",
    "--init --bootstrap 9": "--bootstrap goes with scores",
    "--init --format json": "--init has no json format; leave --format out",
    "--validate C": "Invalid argument `C'\n  did you mean --expected-directory C?",
    "-l -w": "--line-by-line and --worst-features are different modes: take one",
    "--filter exp:a": "--filter goes with --line-by-line or --diff; a metric that is filtered: METRIC:f<FEATURE>",
    "--sort": "--sort goes with --line-by-line, --diff, --worst-features or --most-worsening-features",
    "--bigrams": "--bigrams goes with --worst-features, --most-worsening-features, --line-by-line or --diff",
    "--seed 3": "--seed goes with --bootstrap", "-l -B 5": "--bootstrap goes with scores",
    "-B 1000001": "the number of samples is at most 1000000, not 1000001",
    "-w --show-preprocessed": "--show-preprocessed goes with --line-by-line or --diff",
    "-w --mark-worst-features": "--mark-worst-features goes with --line-by-line",
    "--alt-out-file a": "--alt-out-file goes with --oracle-item-based",
    "--oracle-item-based": "--oracle-item-based chooses between outputs: name others with --alt-out-file",
}  # fmt: skip


@pytest.mark.parametrize(("words", "message"), MODE_ERRORS.items(), ids=MODE_ERRORS)
def test_options_that_do_not_go_together(words, message):
    assert refused(*words.split()) == message


# config.txt

CONFIG_WORDS = {
    "blank": (" \n\t\n", []),
    "words": ("--metric A --precision 2\n", ["--metric", "A", "--precision", "2"]),
    "lines": ("--metric\nA\r\n\n  -p\t2", ["--metric", "A", "-p", "2"]),
    "an escaped space": (r"--metric N<a\ b>", ["--metric", "N<a b>"]),
    "an escaped backslash escapes nothing": (r"a\\ b", [r"a\\", "b"]),
    "what Haskell takes for no space": ("a\u2028b\x85c\x1cd\u00a0e", ["a\u2028b\x85c\x1cd", "e"]),
    "undecodable bytes": ("-m N<\udcff>", ["-m", "N<\ufffd>"]), "an escaped line end": ("a\\\nb c", ["a\nb", "c"]),
    "other backslashes": (r"s<\d+><\\>", [r"s<\d+><\\>"]), "a backslash at the end": ("a\\", ["a\\"]),
    "no quotes": ('--metric "a b"', ["--metric", '"a', 'b"']),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), CONFIG_WORDS.values(), ids=CONFIG_WORDS)
def test_words_of_config_txt(text, words, here):
    """GEval 1.42.2 (parseConfigFileContents): words split at white space, which a backslash keeps; no quotes."""
    (here / "config.txt").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert read_config("config.txt") == words


WORD = st.text(st.sampled_from("ab-:<>\\ \t\n\u00a0"), min_size=1).filter(re.compile(r"(?:\\\S|[^\\])+").fullmatch)


@PROPERTY
@given(st.lists(WORD))
def test_words_come_back(words):
    escaped = ("".join("\\" + c if c.isspace() else c for c in word) for word in words)
    Path("config.txt").write_bytes("".join(f"{word}\n" for word in escaped).encode())
    assert read_config("config.txt") == words


def test_no_config_txt():
    assert read_config("config.txt") == read_config("nowhere/config.txt") == []
    with pytest.raises(UnreadableFileError) as caught:
        read_config(".")
    assert str(caught.value) == "Cannot read `.`: it is a folder, not a file"


PRECEDENCE = {
    "only config.txt": ("-m A -p 2", "", {"metrics": ("A",), "precision": 2}),
    "the command line wins": ("-p 2 -t dev-0", "-p 3", {"precision": 3, "test_name": "dev-0"}),
    "metrics add up": ("-m A --metric B", "-m C", {"metrics": ("A", "B", "C")}),
    "alternative metrics": ("-m A", "-a B", {"metrics": ("A",), "alt_metrics": ("B",)}),
    "a switch": ("-%", "-p1", {"percentage": True, "precision": 1}),
    "outputs are replaced": ("-o a -o b --metric M", "-o c -m N", {"out_files": ("c",), "metrics": ("M", "N")}),
}


@pytest.mark.parametrize(("in_config", "words", "values"), PRECEDENCE.values(), ids=PRECEDENCE)
def test_config_txt_comes_in_front_of_the_command_line(in_config, words, values, config):
    config(in_config)
    assert understood(words.split()) == both(**values)


@pytest.mark.parametrize("option", ["--out-directory", "--expected-directory"])
def test_config_txt_is_in_the_directory_of_the_answers(option, here):
    (here / "config.txt").write_text("-p 1")
    (here / "challenge").mkdir()
    (here / "challenge/config.txt").write_text("-p 2")
    assert parse([option, "challenge"])[1].precision == 2
    assert parse(["--out-directory", "nowhere"])[1].precision is None


@pytest.mark.parametrize("words", ["-h", "-v", "--list-metrics"])
def test_what_shows_something_and_exits_does_not_look_at_config_txt(words, config):
    config("--broken")
    assert list(map(vars, parse([words]))) in (both(help=True), both(version=True), both(list_metrics=True))
    assert refused("--metrics").startswith("Invalid option `--metrics'")  # the command line is looked at first


def test_what_no_score_depends_on_is_ignored_in_config_txt(config):
    config("-m A --gonito-host example.org --token=x --gonito-git-annex-remote y "
           "--plot-graph graph.png --token z -p 2")  # fmt: skip
    task, settings = parse([])
    assert (task.metrics, settings.precision, set(task.ignored)) == (("A",), 2, {*IGNORED, "--plot-graph"})
    assert config_task(".").metrics == Challenge.open(".").task.metrics == ("A",)


BROKEN_CONFIGS = {
    "an unknown option": ("-m A --metrics B", "Invalid option `--metrics'\n  did you mean --metric?"),
    "a stray word": ("# a comment", "Invalid argument `#'\n  geval --help shows the options"),
    "a value is missing": ("--metric", f"argument -m/--metric: expected one argument{SEE_HELP}"),
    "a tokenizer": ("-T 14a",
     "Unknown tokenizer: 14a\n  did you mean v14? there are minimalistic, character-by-character, 13a, v14"),
    "a line end in a flag": ("-m LogLossHashed:s<a><\\\n>",
     "Unknown or broken metric flags: s<a><\\n>\n  there is a line end in s<a><\\n>; lines have none"),
    "init": ("--init", "--init has no place in config.txt"),
    "not available, and ignored": ("--token x --submit", NOT_AVAILABLE[SUBMIT].format(SUBMIT)),
    "an ignored option without its value": ("--token", f"argument --token: expected one argument{SEE_HELP}"),
    "list of metrics": ("--list-metrics", "--list-metrics has no place in config.txt"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BROKEN_CONFIGS.values(), ids=BROKEN_CONFIGS)
@pytest.mark.parametrize("read", [lambda: parse([]), lambda: config_task(".")])
def test_a_broken_config_txt(text, message, read, config):
    config(text)
    with pytest.raises(ConfigError) as caught:
        read()
    assert str(caught.value) == f"{message}\n  in `./config.txt`"
    assert (caught.value.path, caught.value.exit_status) == ("./config.txt", 1)


def test_config_task(here):
    (here / "challenge").mkdir()
    (here / "challenge/config.txt").write_text("-m A -t dev-0 --out-directory elsewhere")
    assert vars(config_task("challenge")) == vars(Task(metrics=("A",), test_name="dev-0", out_directory="challenge"))


@pytest.mark.parametrize(("words", "metrics"), [
    ("", []), ("-m A", ["A"]), ("-m {A,B}{1,2} -m C", ["A1", "A2", "B1", "B2", "C"]), ("-m A -a B", ["B"]),
    ("-m A -a {B,C}", ["B", "C"]),
])  # fmt: skip
def test_an_alternative_metric_replaces_all_and_products_multiply_out(words, metrics):
    assert [scheme.text for scheme in parse_task(words.split()).schemes()] == metrics


def test_tasks_and_settings_do_not_change():
    with pytest.raises(AttributeError):
        Settings().precision = 2
    with pytest.raises(AttributeError):
        Task().metrics = ()


def test_a_format_of_config_txt_is_for_the_modes_that_have_it(config):
    config("--format json")
    assert parse(["--oracle-item-based", "--alt-out-file", "a"])[1].format == "text"
    assert parse([])[1].format == "json"


def test_an_output_in_the_current_folder_belongs_to_its_challenge(here, monkeypatch):
    (here / "dev-0").mkdir()
    for name in ("expected.tsv", "out.tsv"):
        (here / "dev-0" / name).touch()
    (here / "config.txt").write_text("-m A")
    monkeypatch.chdir(here / "dev-0")
    for word in ("out.tsv", "./out.tsv"):
        task = parse_task([word])
        assert (task.test_name, task.out_directory, task.metrics) == ("dev-0", "..", ("A",))
