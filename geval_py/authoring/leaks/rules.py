"""The rules on what a challenge gives away, in one table."""

from __future__ import annotations

from geval_py.checking.rules import Rule

COMMAND = "geval challenge leaks"
NEIGHBOURS = 3  # words on each side of a gap, by which it is found elsewhere
MANY_READABLE, SOME_READABLE = 0.05, 0.01  # of a part's items, above which E404 and W404 speak
LEAST_NGRAM, MOST_NGRAM = 8, 13  # words; as for GPT-3 (Brown et al. 2020, appendix C)
LENGTH_PERCENTILE = 5  # of the items' lengths, which gives n within those bounds (the same)
MOST_DOCUMENTS = 10  # of the training set: an n-gram in more is a phrase (the same)
NEAR_DUPLICATE = 0.2  # of an item's n-grams of LEAST_NGRAM words
LEAST_SENTENCE = 6  # words
OVERLAPPING = 0.05  # of the training items

LEAK_RULES = (
    Rule(
        "E401", "answers-in-public", "hidden answers lie in the public folder, or in its git history",
        "Whoever has the folder has the answers; what git once held, every clone holds.",
        "Move the answers to a folder of their own (geval challenge make does); start a new repository if they were "
        "committed.",
    ),
    Rule(
        "E402", "group-in-two-parts", "a document is in two parts",
        "A model that has seen a half of a document knows the names and the subject of the other half: scores are "
        "too good, and tell nothing of new documents.",
        "Deal whole documents (or newspapers, or books: --group) to the parts: geval challenge split does.",
    ),
    Rule(
        "E403", "item-in-two-parts", "the same item is in two parts",
        "Who learns it by heart from one part answers it in the other.",
        "Remove the duplicates from the texts before they are cut.",
    ),
    Rule(
        "W403", "item-twice", "the same item is in a part more than once",
        "It counts twice, and if the answers differ, none can be right on both.",
        "Remove the duplicates from the texts before they are cut.",
    ),
    Rule(
        "E404", "readable-in-inputs", "answers can be read in other inputs of the same part",
        f"The {NEIGHBOURS} words on each side of more than {MANY_READABLE:.0%} of the gaps stand in another input, "
        "with the answer between them: no model is needed.",
        "Cut windows that do not overlap, with one gap each: geval challenge make does.",
    ),
    Rule(
        "W404", "some-readable-in-inputs", "some answers can be read in other inputs of the same part",
        f"The {NEIGHBOURS} words on each side of more than {SOME_READABLE:.0%} of the gaps stand in another input, "
        "with a word between them. A few are what any text repeats.",
        "See whether windows overlap, or texts are repeated.",
    ),
    Rule(
        "W405", "readable-in-train", "gaps whose answer can be read in the training set",
        f"The {NEIGHBOURS} words on each side stand there, with a word between them. Where these are few, they are "
        "what any text repeats.",
        "If there are many, see whether a text is in both, as a reprint, a quotation or another edition.",
    ),
    Rule(
        "W406", "shared-ngram", "inputs that share a run of words with the training set",
        f"The run is as long as the {LENGTH_PERCENTILE}th percentile of the inputs, but of {LEAST_NGRAM} to "
        f"{MOST_NGRAM} words. What stands in more than {MOST_DOCUMENTS} training documents is a phrase, and not "
        "counted.",
        "Look at the lines named: reprints and quotations are to be in one part; phrases do no harm.",
    ),
    Rule(
        "W407", "near-duplicate", "inputs that are nearly in the training set",
        f"More than {NEAR_DUPLICATE:.0%} of their runs of {LEAST_NGRAM} words stand there.",
        "Keep the document, and what it is a copy of, in one part (--group), or leave one out.",
    ),
    Rule(
        "W408", "sentence-in-train", "a whole sentence of an input stands in the training set",
        f"Sentences of {LEAST_SENTENCE} words or more are compared, without their capitals and punctuation.",
        "Look at the lines named: set phrases do no harm.",
    ),
    Rule(
        "W409", "few-groups", "a part has few documents",
        "Its score tells more of these documents than of a model, and intervals are too narrow.",
        "Give more documents, or smaller ones.",
    ),
    Rule(
        "W410", "train-overlaps", "windows of the training set overlap",
        "Its answers can be read in its other inputs, and who counts words counts the same ones many times, which "
        "makes n-gram models worse.",
        "Cut windows that do not overlap, or say in the README that they do.",
    ),
)  # fmt: skip
LEAK_RULES_BY_CODE = {rule.code: rule for rule in LEAK_RULES}
