"""The data that a new challenge of another task than word gaps begins with, and which sample is for which metric."""

from __future__ import annotations

from geval_py.authoring.samples import CLASSES, WORD_GAPS, Sample
from geval_py.scoring.metrics import Metric

TRANSLATION = Sample(
    title="Translate a sentence",
    task="Translate a German sentence into English.",
    in_header=("German",),
    out_header="English",
    how="A line of `expected.tsv` is the translation, or several that are as good, with a TAB between them; an\n"
    "output has one a line.",
    train=(("Der Zug kam zu spät an.", "The train arrived late."), ("Es hat geregnet.", "It has been raining.")),
    hidden=(
        (
            (
                "Der Hund schläft unter dem Tisch.",
                "The dog sleeps under the table.\tThe dog sleeps below the table.",
            ),
            ("Wir gehen morgen ans Meer.", "We are going to the sea tomorrow."),
        ),
        (
            ("Die Brücke ist sehr alt.", "The bridge is very old."),
            ("Wer hat das Fenster geöffnet?", "Who has opened the window?\tWho opened the window?"),
        ),
    ),
)
CORRECTION = Sample(
    title="Mend a text that was read by a machine",
    task="Give the text as it was printed.",
    in_header=("Text",),
    out_header="CorrectedText",
    how="A line of `in.tsv` is what the machine read, and the line of `expected.tsv` beside it what is printed.",
    train=(("The fcrry left at noon.", "The ferry left at noon."), ("A 1amp was burning.", "A lamp was burning.")),
    hidden=(
        (("Tvvo boys were seen.", "Two boys were seen."), ("lt was late.", "It was late.")),
        (("The kcy lay in a drawer.", "The key lay in a drawer."), ("She said nothlng.", "She said nothing.")),
    ),
)
KINDS = Sample(
    title="Tell what a word is",
    task="Say whether a word is a noun, a verb or an adjective.",
    in_header=("Word",),
    out_header="Kind",
    how="A line of `expected.tsv` is the class of the word beside it in `in.tsv`; an output has a class a line.",
    train=(("river", "noun"), ("sleep", "verb"), ("old", "adjective")),
    hidden=((("table", "noun"), ("arrive", "verb")), (("late", "adjective"), ("bridge", "noun"))),
)
LABELS = Sample(
    title="Label a note",
    task="Say what a note is about: any of weather, travel and food, or none of them.",
    in_header=("Note",),
    out_header="Labels",
    how="A line of `expected.tsv` has the labels, with spaces between them. A label of an output may have a\n"
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
    out_header="Metres",
    how="A line of `expected.tsv` is a number, and so is a line of an output.",
    train=(("a church of a village", "31.5"), ("a lighthouse", "40")),
    hidden=((("a mill", "18"), ("a television tower", "210.5")), (("a gate of a town", "22.5"), ("a minster", "97"))),
)
POINTS = Sample(
    title="Find a place",
    task="Say where a place lies.",
    in_header=("Place",),
    out_header="Longitude",
    how="A line of `expected.tsv` is a longitude, a TAB and a latitude, in degrees, and so is a line of an output.",
    train=(("Cracow", "19.94\t50.06"), ("Lisbon", "-9.14\t38.71")),
    hidden=(
        (("Poznań", "16.93\t52.41"), ("Oslo", "10.74\t59.91")),
        (("Quito", "-78.51\t-0.22"), ("Perth", "115.86\t-31.95")),
    ),
)
RANKING = Sample(
    title="Find what fits",
    task="Give things that fit a word, the best first.",
    in_header=("Word",),
    out_header="Thing",
    how="A line of `expected.tsv` has the things that fit, with a TAB between them, in any order; a line of an\n"
    "output has those found, the best first.",
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
    out_header="Tags",
    how="A line of `expected.tsv` has a tag for each word: `B-person` begins a name, `I-person` goes on with it,\n"
    "`O` is none.",
    train=(("Anna lives in Cracow", "B-person O O B-place"), ("It rained", "O O")),
    hidden=(
        (("Ask Jan Nowak", "O B-person I-person"), ("Oslo is cold", "B-place O O")),
        (("Who is Maria", "O O B-person"), ("New York is far", "B-place I-place O O")),
    ),
)
_NAMES = (
    (TRANSLATION, "BLEU GLEU SacreBLEU chrF chrF++ TER"),
    (CORRECTION, "WER CER WAR CAR Mean/WER Mean/CER Mean/WAR Mean/CAR CharMatch"),
    (KINDS, "Lower/Accuracy MacroAvg/Accuracy Macro-F NMI"),
    (CLASSES, "F Likelihood LogLoss MacroAvg/Likelihood"),  # as in GEval, classes of 0 and 1
    (LABELS, "MultiLabel-F Mean/MultiLabel-F Probabilistic-MultiLabel-F MultiLabel-LogLoss MultiLabel-Likelihood"),
    (NUMBERS, "RMSE MSE MAE SMAPE Pearson Spearman"),
    (POINTS, "Haversine"),
    (RANKING, "MAP NDCG@"),
    (TAGS, "TokenAccuracy BIO-F BIO-F1-Labels"),
)
_SAMPLES = {name: sample for sample, names in _NAMES for name in names.split()}


def sample_for(metric: Metric) -> Sample:
    """Give the sample for a metric: that of its name, without a number that it ends in, or gaps in texts."""
    return _SAMPLES.get(metric.name) or _SAMPLES.get(metric.name.rstrip("0123456789."), WORD_GAPS)
