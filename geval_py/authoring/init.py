"""Write a new challenge with sample data, to be replaced by the organiser's own: GEval's ``--init``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from geval_py.errors import UsageError
from geval_py.reading import challenge, config, rewriting, splits
from geval_py.scoring import evaluate
from geval_py.scoring.metrics.base import Metric
from geval_py.text import SPACES, visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The sample data for a kind of metric: title and task, columns, and items as pairs of input and answer.

    ``hidden`` are the items of dev-0 and of the hidden set. ``how`` describes the files in README.md. Without columns
    on one side there is no file of headers, as in GEval.
    """

    title: str
    task: str
    in_header: tuple[str, ...]
    out_header: tuple[str, ...]
    train: tuple[tuple[str, str], ...]
    hidden: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]
    how: str = ""

    @property
    def headers(self) -> dict[str, tuple[str, ...]]:
        """The columns of each file of headers."""
        every = {splits.IN_HEADER_FILE: self.in_header, splits.OUT_HEADER_FILE: self.out_header}
        return {name: columns for name, columns in every.items() if columns}


WORD_GAPS = Sample(
    title="Guess the missing word",
    task="Give a probability distribution over the words that may stand in the gap of a text.",
    in_header=("LeftContext", "RightContext"),
    out_header=("GuessedWord",),
    train=(
        ("The ferry left the pier at\tand came back before dark.", "noon"),
        ("We had rain all night, and the\tin the valley rose by a foot.", "river"),
        ("She put the letter back into the\tand said nothing.", "drawer"),
        ("A lamp was burning in the\twindow of the school.", "upper"),
    ),
    hidden=(
        (
            ("The train from the coast was late, and it was\twhen we sat down.", "noon"),
            ("Two boys were seen on the ice of the\tbelow the mill.", "river"),
        ),
        (("The key lay in a\tof the old desk.", "drawer"), ("He lives with his sister on the\tfloor.", "upper")),
    ),
)
CLASSES = Sample(
    title="Recognise questions",
    task="Give the probability that a sentence without punctuation is a question.",
    in_header=("Text",),
    out_header=("Probability",),
    how="Each line of `in.tsv` is a sentence; the same line of `expected.tsv` is 1 for a question, else 0.\n"
    "Each line of an output is one number: the probability of 1.",
    train=(
        ("where did you leave the boat", "1"),
        ("the boat lies behind the bridge", "0"),
        ("is there any bread left", "1"),
        ("there is some bread on the table", "0"),
    ),
    hidden=(
        (("who has opened the window", "1"), ("the window was open all night", "0"), ("can you hear the rain", "1")),
        (("the rain has stopped", "0"), ("when does the market begin", "1"), ("it begins before sunrise", "0")),
    ),
)
TRANSLATION = Sample(
    title="Translate a sentence",
    task="Translate a German sentence into English.",
    in_header=(),
    out_header=(),
    how="Each line of `expected.tsv` is the translation, or several good ones with a TAB between them; an output\n"
    "has one on each line.",
    train=(("Der Zug kam zu spät an.", "The train arrived late."), ("Es hat geregnet.", "It has been raining.")),
    hidden=(
        (
            ("Der Hund schläft unter dem Tisch.", "The dog sleeps under the table.\tThe dog sleeps below the table."),
            ("Wir gehen morgen ans Meer.", "We are going to the sea tomorrow."),
        ),
        (
            ("Die Brücke ist sehr alt.", "The bridge is very old."),
            ("Wer hat das Fenster geöffnet?", "Who has opened the window?\tWho opened the window?"),
        ),
    ),
)
CORRECTION = Sample(
    title="Correct the errors of text recognition",
    task="Give the text as it was printed.",
    in_header=("Text",),
    out_header=("CorrectedText",),
    how="Each line of `in.tsv` is a recognised text; the same line of `expected.tsv` is the printed text.",
    train=(("The fcrry left at noon.", "The ferry left at noon."), ("A 1amp was burning.", "A lamp was burning.")),
    hidden=(
        (("Tvvo boys were seen.", "Two boys were seen."), ("lt was late.", "It was late.")),
        (("The kcy lay in a drawer.", "The key lay in a drawer."), ("She said nothlng.", "She said nothing.")),
    ),
)
TRANSCRIPTION = replace(CORRECTION, in_header=(), out_header=())
KINDS = Sample(
    title="Classify words",
    task="Say whether a word is a noun, a verb or an adjective.",
    in_header=("Word",),
    out_header=("Kind",),
    how="Each line of `expected.tsv` is the class of the word in `in.tsv`; an output has a class on each line.",
    train=(("river", "noun"), ("sleep", "verb"), ("old", "adjective")),
    hidden=((("table", "noun"), ("arrive", "verb")), (("late", "adjective"), ("bridge", "noun"))),
)
LABELS = Sample(
    title="Label a note",
    task="Say what a note is about: any of weather, travel and food, or none of them.",
    in_header=("Note",),
    out_header=("Labels",),
    how="Each line of `expected.tsv` has the labels, with spaces between them. A label of an output may have a\n"
    "probability: `weather:0.75 travel:0.5`.",
    train=(("We had rain on the ferry.", "weather travel"), ("The soup was cold.", "food")),
    hidden=(
        (("The train stood still in the snow.", "weather travel"), ("Bread and cheese.", "food")),
        (("They serve fish on the boat.", "food travel"), ("It was hot.", "weather")),
    ),
)
NUMBERS = Sample(
    title="Guess a number",
    task="Say how many metres a tower is high.",
    in_header=("Tower",),
    out_header=("Metres",),
    how="Each line of `expected.tsv` is a number, and so is each line of an output.",
    train=(("a church of a village", "31.5"), ("a lighthouse", "40")),
    hidden=((("a mill", "18"), ("a television tower", "210.5")), (("a gate of a town", "22.5"), ("a minster", "97"))),
)
POINTS = Sample(
    title="Find a place",
    task="Say where a place lies.",
    in_header=("Place",),
    out_header=("Longitude", "Latitude"),
    how="Each line of `expected.tsv`, and of an output, is a longitude, a TAB and a latitude, in degrees.",
    train=(("Cracow", "19.94\t50.06"), ("Lisbon", "-9.14\t38.71")),
    hidden=(
        (("Poznań", "16.93\t52.41"), ("Oslo", "10.74\t59.91")),
        (("Quito", "-78.51\t-0.22"), ("Perth", "115.86\t-31.95")),
    ),
)
RANKING = Sample(
    title="Find related things",
    task="Give things that fit a word, the best first.",
    in_header=("Word",),
    out_header=(),
    how="Each line of `expected.tsv` has the things that fit, with a TAB between them, in any order; each line of\n"
    "an output has guesses, the best first.",
    train=(("kitchen", "pan\tstove"), ("harbour", "ship\tcrane\tquay")),
    hidden=(
        (("school", "desk\tblackboard"), ("garden", "rake")),
        (("station", "platform\ttrain"), ("church", "bell\taltar")),
    ),
)
TAGS = Sample(
    title="Tag names",
    task="Find the names of people and places in a sentence.",
    in_header=("Sentence",),
    out_header=("Tags",),
    how="Each line of `expected.tsv` has a tag for each word: `B-person` begins a name, `I-person` continues it,\n"
    "`O` is outside of names.",
    train=(("Anna lives in Cracow", "B-person O O B-place"), ("It rained", "O O")),
    hidden=(
        (("Ask Jan Nowak", "O B-person I-person"), ("Oslo is cold", "B-place O O")),
        (("Who is Maria", "O O B-person"), ("New York is far", "B-place I-place O O")),
    ),
)
ANNOTATIONS = Sample(
    title="Mark names",
    task="Find the names of people and places in a sentence, and say where they stand.",
    in_header=("Sentence",),
    out_header=("Names",),
    how="Each line of `expected.tsv` has the names, with spaces between them: a label, and the positions of the\n"
    "characters, from 1, as in `place:15-20`; several parts are written `place:2-5,9`. An output may have a\n"
    "probability behind it: `place:15-20:0.75`.",
    train=(("Anna lives in Cracow", "person:1-4 place:15-20"), ("It rained", "")),
    hidden=(
        (("Ask Jan Nowak", "person:5-13"), ("Oslo is cold", "place:1-4")),
        (("Who is Maria", "person:8-12"), ("From Lyon to New York", "place:6-9 place:14-21")),
    ),
)
SEGMENTS = Sample(
    title="Split a sentence",
    task="Divide a sentence into words, and say of what kind each is.",
    in_header=("Sentence",),
    out_header=("Words",),
    how="Each line of `expected.tsv` has the words, with spaces between them: a kind, and the positions of the\n"
    "characters, from 1, as in `noun:1-5`. No position is in two words.",
    train=(("Birds sing", "noun:1-5 verb:7-10"), ("Old bridges fall", "adjective:1-3 noun:5-11 verb:13-16")),
    hidden=(
        (("Snow falls", "noun:1-4 verb:6-10"), ("Cold rivers run", "adjective:1-4 noun:6-11 verb:13-15")),
        (("Ships leave", "noun:1-5 verb:7-11"), ("Late trains stop", "adjective:1-4 noun:6-11 verb:13-16")),
    ),
)
RECTANGLES = Sample(
    title="Find pictures",
    task="Find the pictures in a scanned book.",
    in_header=("File",),
    out_header=("Pictures",),
    how="Each line of `expected.tsv` has the pictures of a book, with spaces between them: a label, the number of\n"
    "the page, and two opposite corners in pixels, as in `map:2/50,60,500,700`. An output may have a probability\n"
    "behind it: `map:2/50,60,500,700:0.75`.",
    train=(("atlas.pdf", "map:2/50,60,500,700 map:9/40,300,560,480"), ("letters.pdf", "portrait:1/200,90,420,380")),
    hidden=(
        (("birds.pdf", "bird:4/10,20,300,200 bird:4/10,220,300,410"), ("journey.pdf", "map:1/0,0,600,800")),
        (("towns.pdf", "map:3/50,50,550,400"), ("plants.pdf", "leaf:7/120,90,340,510 leaf:8/80,90,300,480")),
    ),
)
CLIPPINGS = replace(
    RECTANGLES,
    how="Each line of `expected.tsv` has the pictures of a book, with spaces between them: the number of the page,\n"
    "two opposite corners, and by how many pixels each bound may be wrong, as in `2/50,60,500,700/5`. An output has\n"
    "no margins: `2/50,60,500,700`.",
    train=(("atlas.pdf", "2/50,60,500,700/5 9/40,300,560,480/5"), ("letters.pdf", "1/200,90,420,380/10")),
    hidden=(
        (("birds.pdf", "4/10,20,300,200/5 4/10,220,300,410/5"), ("journey.pdf", "1/0,0,600,800/10")),
        (("towns.pdf", "3/50,50,550,400/5"), ("plants.pdf", "7/120,90,340,510/5 8/80,90,300,480/5")),
    ),
)
INTERVALS = Sample(
    title="Date a sentence",
    task="Say in which year a sentence was written.",
    in_header=("Sentence",),
    out_header=("Year",),
    how="Each line of `expected.tsv` is the first and the last possible year, with a comma between them, as in\n"
    "`1880,1889.5`; each line of an output is one number.",
    train=(("The steamer leaves at nine.", "1880,1889.5"), ("We saw it on television.", "1961,1965")),
    hidden=(
        (("The mail coach was robbed.", "1810,1830"), ("Send it by telegraph.", "1870,1875.5")),
        (("He wound up the gramophone.", "1911,1925"), ("Gas is laid on in every room.", "1855,1890")),
    ),
)
SELECTION = Sample(
    title="Choose offers",
    task="Rate offers, so that those of a good rating are worth more than the others.",
    in_header=("Offer",),
    out_header=("Worth",),
    how="Each line of `expected.tsv` is what an offer is worth. Each line of an output is a rating; the offers\n"
    "whose rating is at least the number in the metric's name are chosen.",
    train=(("a boat with a hole", "-2.5"), ("a house on the hill", "8"), ("a bicycle", "1.5")),
    hidden=(
        (("a field by the river", "4"), ("a broken lamp", "-0.5"), ("a garden", "2.5")),
        (("an old map", "3"), ("a wet cellar", "-4"), ("a good knife", "1")),
    ),
)
ABBREVIATIONS = Sample(
    title="Expand abbreviations",
    task="Say what an abbreviation in a sentence stands for.",
    in_header=("Abbreviation", "Sentence"),
    out_header=("Expansion", "BaseForm"),
    how="Each line of `expected.tsv`, and of an output, is the expansion as it stands in the sentence, a TAB, and\n"
    "its base form.",
    train=(("min.\tWait five min. for the ferry.", "minutes\tminute"), ("Dr.\tDr. Nowak is out.", "Doctor\tdoctor")),
    hidden=(
        (("St.\tIt is in Mill St. now.", "Street\tstreet"), ("mi.\tIt is ten mi. from here.", "miles\tmile")),
        (("no.\tThey live at no. 9.", "number\tnumber"), ("vols.\tA book in two vols.", "volumes\tvolume")),
    ),
)
CHOICES = Sample(
    title="Choose the missing word",
    task="Say which of four words is missing from a text.",
    in_header=("LeftContext", "RightContext", "Options"),
    out_header=("ChosenWord",),
    how="Each line of `in.tsv` has the text left of the gap, the text right of it, and the options with spaces\n"
    "between them, in the last column. The same line of `expected.tsv` is the right option.\n"
    "Each line of an output has probabilities of options: `bridge:0.7 river:0.2 :0.1`.",
    train=(
        ("We crossed the river by the\tand walked on.\tbridge tide field lamp", "bridge"),
        ("She closed the\tbecause of the wind.\twindow river letter coast", "window"),
    ),
    hidden=(
        (("He put a stamp on the\tand posted it.\tletter field train ice", "letter"),
         ("The train left the\tat noon.\tdesk station drawer soup", "station")),
        (("They ate their\twith bread.\tdesk soup tide lamp", "soup"),
         ("The boats wait for the high\tin the harbour.\ttide letter drawer bread", "tide")),
    ),
)  # fmt: skip
NORMS = Sample(
    title="Predict how people go on",
    task="Give the distribution of the words with which people continue a text.",
    in_header=("LeftContext",),
    out_header=("Words",),
    how="Each line of `expected.tsv` has the words that people wrote, each with its share: `tea:0.6 milk:0.4`.\n"
    "Each line of an output has words with probabilities; the last entry, as in `tea:0.5 :0.5`, is for all others.",
    train=(("He drank a cup of", "tea:0.6 coffee:0.3 milk:0.1"), ("The dog ran after the", "cat:0.7 ball:0.3")),
    hidden=(
        (("She opened the", "door:0.5 window:0.3 letter:0.2"), ("It rained all", "day:0.6 night:0.4")),
        (("They sat down at the", "table:0.9 :0.1"), ("The ferry crossed the", "river:0.5 sea:0.3 lake:0.2")),
    ),
)
LANGUAGES = Sample(
    title="Recognise a language",
    task="Say in which language a sentence is: de, en or pl.",
    in_header=("Text",),
    out_header=("Language",),
    how="Each line of `expected.tsv` is the language of the sentence in `in.tsv`.\n"
    "Each line of an output has languages with probabilities: `pl:0.7 en:0.2 de:0.1`.",
    train=(("Es hat geregnet.", "de"), ("It has rained.", "en"), ("Padał deszcz.", "pl")),
    hidden=(
        (("The table is old.", "en"), ("Stół jest stary.", "pl")),
        (("Der Tisch ist alt.", "de"), ("Who is there?", "en")),
    ),
)
FORECASTS = Sample(
    title="Forecast the weather",
    task="Give the probabilities of rain, snow and neither of them.",
    in_header=("Day", "Baseline"),
    out_header=("Weather",),
    how="The last column of `in.tsv` is the forecast of a baseline, `dry:0.7 rain:0.2 snow:0.1`, such as the shares\n"
    "of past years; the same line of `expected.tsv` is what happened. An output has a forecast on each line.",
    train=(("4 May\tdry:0.6 rain:0.4", "rain"), ("5 May\tdry:0.6 rain:0.4", "dry")),
    hidden=(
        (("6 January\tdry:0.5 rain:0.2 snow:0.3", "snow"), ("6 May\tdry:0.6 rain:0.4", "dry")),
        (("7 January\tdry:0.5 rain:0.2 snow:0.3", "dry"), ("7 May\tdry:0.6 rain:0.4", "rain")),
    ),
)
_NAMES = (
    (TRANSLATION, "BLEU GLEU SacreBLEU chrF chrF++ TER"),
    (TRANSCRIPTION, "WER WAR"),
    (CORRECTION, "CER CAR CharMatch"),
    (KINDS, "Macro-F NMI"),
    (CLASSES, "F Likelihood LogLoss"),  # as in GEval, classes of 0 and 1
    (LABELS, "MultiLabel-F Probabilistic-MultiLabel-F MultiLabel-LogLoss MultiLabel-Likelihood"),
    (NUMBERS, "RMSE MSE MAE SMAPE Pearson Spearman"),
    (POINTS, "Haversine"),
    (RANKING, "MAP NDCG@"),
    (TAGS, "TokenAccuracy BIO-F BIO-F1-Labels BIO-Weighted-F"),
    (ANNOTATIONS, "Soft-F Probabilistic-Soft-F FLC-F"),
    (SEGMENTS, "SegmentAccuracy"),
    (RECTANGLES, "Soft2D-F Probabilistic-Soft2D-F"),
    (CLIPPINGS, "ClippEU"),
    (INTERVALS, "RMSE-Against-Interval MSE-Against-Interval MAE-Against-Interval"),
    (SELECTION, "Improvement@"),
    (ABBREVIATIONS, "CustomMetric1"),
    (CHOICES, "ChoiceAccuracy ChoiceLogLoss"),
    (NORMS, "CrossEntropyToNormsHashed KullbackLeiblerHashed RankCorrelation"),
    (LANGUAGES, "BrierScore CalibrationError"),
    (FORECASTS, "LogSkillScore"),
)
_SAMPLES = {name: sample for sample, names in _NAMES for name in names.split()}


def sample_for(metric: Metric) -> Sample:
    """Return the sample for a metric, by its name without prefixes and a number at the end; by default word gaps."""
    prefixes, _, inner = metric.name.rpartition("/")
    if prefixes and inner == "Accuracy":
        return KINDS
    return _SAMPLES.get(inner) or _SAMPLES.get(inner.rstrip("-0123456789."), WORD_GAPS)


def init_challenge(task: config.Task, *, precision: int | None = None, percentage: bool = False) -> None:
    """Write a new challenge with sample data into a task's directory.

    The task also has the metrics, the name of the hidden test set and the name of the answers' file. ``precision``
    and ``percentage`` are written into config.txt, for showing scores. Either all files are written or none. Raises
    UsageError (no metric, an impossible name), SchemeError, ExistingFileError and MissingFileError.
    """
    schemes = evaluate.select_schemes(task)
    name = task.test_name
    if name in (splits.DEV_SET, splits.TRAINING_SET):
        advice = "give the hidden test set another name, such as test-B"
        raise UsageError(message=f"a new challenge has its own {name}: {advice}")
    if not re.fullmatch(r"[^/\\]+", name) or name in (".", ".."):
        raise UsageError(message=f"a test set's name is a folder's: {visible(name)}")
    expected = task.expected_file or splits.EXPECTED_FILE
    if not re.fullmatch(r"[^/\\]+", expected):
        raise UsageError(message=f"the answers need a file's name, without a folder: {visible(expected)}")
    sample = sample_for(schemes[0][1])
    data = data_files(sample, task.test_name, expected)
    head = {
        rewriting.GITIGNORE_FILE: rewriting.GITIGNORE,
        challenge.README_FILE: readme(sample, schemes[0], task.test_name, expected),
        config.CONFIG_FILE: config_text(
            schemes, task.test_name, precision=precision, percentage=percentage, headers=sample.headers
        ),
    }
    headers = {name: "\t".join(columns) + "\n" for name, columns in sample.headers.items()}
    texts = head | headers | dict(data)
    rewriting.write_files(task.directory, {name: text.encode() for name, text in texts.items()})


def data_files(sample: Sample, test_name: str, expected_file: str = splits.EXPECTED_FILE) -> Mapping[str, str]:
    """Return the texts of in.tsv and of the expected file of each set, by their paths, train first."""
    sets = {splits.TRAINING_SET: sample.train, splits.DEV_SET: sample.hidden[0], test_name: sample.hidden[1]}
    files: dict[str, str] = {}
    for name, items in sets.items():
        files[f"{name}/{splits.INPUT_FILE}"] = "".join(f"{text}\n" for text, _ in items)
        files[f"{name}/{expected_file}"] = "".join(f"{word}\n" for _, word in items)
    return files


def config_text(
    schemes: Sequence[evaluate.Named],
    test_name: str = config.Task.test_name,
    *,
    precision: int | None = None,
    percentage: bool = False,
    headers: Collection[str] = (splits.IN_HEADER_FILE, splits.OUT_HEADER_FILE),
) -> str:
    """Write a config.txt: the metrics and the options that are not defaults, on one line without a line end.

    ``headers`` are the files of headers that there are. White space inside a metric is escaped. Raises UsageError for
    a backslash before white space, which config.txt cannot hold.
    """
    words: list[str] = []
    for scheme, metric in schemes:
        words += ["--metric", f"{metric.name}:{scheme.text.partition(':')[2]}" if scheme.flags else metric.name]
    words += [] if test_name == config.Task.test_name else ["--test-name", test_name]
    words += [] if precision is None else ["--precision", str(precision)]
    words += ["--show-as-percentage"] if percentage else []
    for name, option in ((splits.IN_HEADER_FILE, "--in-header"), (splits.OUT_HEADER_FILE, "--out-header")):
        words += [option, name] if name in headers else []
    text = " ".join(re.sub(f"[{SPACES}]", r"\\\g<0>", word) for word in words)
    for word, read in zip(words, config.words_of(text), strict=False):
        if word != read:
            raise UsageError(message=f"config.txt cannot hold a backslash before white space: {visible(word)}")
    return text


def readme(sample: Sample, scheme: evaluate.Named, test_name: str, expected: str = splits.EXPECTED_FILE) -> str:
    """Write README.md: the task, the files, the format of outputs, and the folders."""
    parts = [f"\n{sample.title}\n{'=' * len(sample.title)}\n\n{sample.task}\n"]
    parts.append(
        "\nThis is a sample: replace the data by your own, and then this page. `geval --validate` checks the files.\n"
    )
    parts.append(f"\n{sample.how}\n" if sample.how else _word_gaps(scheme[1].bits))
    return "".join([*parts, _structure(sample, test_name, expected)])


def _word_gaps(bits: int | None) -> str:
    if bits is None:
        of_words = "Words are compared as they are."
    else:
        of_words = f"Words are hashed into {2**bits} buckets ({bits} bits)."
    return f"""
The training data is plain text too: the text left of a gap, the text right of it, and the word itself.

A line of `in.tsv` has the text left of the gap, a TAB, and the text right of it; the line of `expected.tsv` beside it
is the missing word.

An output has a line for each gap, with words and the logarithms of their probabilities:

    river:-0.7 road:-1.6 sea:-2.3 :-2.3

or with the probabilities themselves:

    river:0.5 road:0.2 sea:0.1 :0.2

The last entry, without a word, is for all other words. {of_words}
"""


def _structure(sample: Sample, test_name: str, expected: str) -> str:
    bullets = [
        (challenge.README_FILE, "this page"),
        (config.CONFIG_FILE, "the options of scoring: the metrics, and how scores are shown"),
    ]
    named = {
        splits.IN_HEADER_FILE: "the names of the input's columns",
        splits.OUT_HEADER_FILE: "the names of the output's columns",
    }
    bullets += [(name, named[name]) for name in sample.headers]
    of_sets = (
        (splits.TRAINING_SET, "training data"),
        (splits.DEV_SET, "development data"),
        (test_name, "the hidden test data"),
    )
    for name, what in of_sets:
        bullets += [
            (f"{name}/", what),
            (f"{name}/in.tsv", "input"),
            (f"{name}/{expected}", "what is expected, a line for each line of the input"),
        ]
    title = "Directory structure"
    return f"\n{title}\n{'-' * len(title)}\n\n" + "".join(f"* `{path}`: {what}\n" for path, what in bullets)
