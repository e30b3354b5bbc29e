// The kernel as a module of Python. Its parts are headers, compiled as one file.
//
// line.hpp reads and scores a line, by means of text.hpp, decoding.hpp, numbers.hpp and mistakes.hpp; block.hpp scores a
// block of lines. Parts named *_calls.hpp take arguments from Python and return objects to it; the others do without.

#include "calls.hpp"
#include "fit_calls.hpp"
#include "line_calls.hpp"
#include "ngram_calls.hpp"
#include "row_calls.hpp"
#include "token_calls.hpp"

namespace {

PyMethodDef METHODS[] = {
    {"read_number", read_number, METH_VARARGS, "read_number(text) -> the number, inf if too large; None if it is none"},
    {"count_lines", count_lines, METH_VARARGS, "count_lines(text) -> number of lines; the last may lack its LF"},
    {"line_profiles", line_profiles, METH_VARARGS,
     "line_profiles(outputs, expected, bits, first_line, draws) -> (columns, histogram)"},
    {"reseeded_losses", reseeded_losses, METH_VARARGS,
     "reseeded_losses(outputs, expected, bits, first_line, seeds) -> the losses under each seed"},
    {"bounded_losses", score_lines<false>, METH_VARARGS,
     "bounded_losses(outputs, expected, bits, first_line) -> (losses, bound, far_above_one)"},
    {"score_lines", score_lines<true>, METH_VARARGS,
     "score_lines(outputs, expected, bits, first_line) -> (losses, flags, index of the first line whose kind of error the "
     "reference must tell, -1 for none)"},
    {"read_guesses", read_guesses, METH_VARARGS,
     "read_guesses(outputs, expected, bits, first_line) -> (counts, masses, hits, rests)"},
    {"bucket_shares", bucket_shares, METH_VARARGS,
     "bucket_shares(words, shares, expected, bits, first_line) -> the sum of the shares in each expected word's bucket"},
    {"exact_sum", exact_sum, METH_O, "exact_sum(numbers) -> the sum, rounded once"},
    {"isotonic", isotonic, METH_VARARGS, "isotonic(values, weights) -> the nearest rising values"},
    {"token_table", token_table, METH_NOARGS, "token_table() -> an empty table of tokens"},
    {"number_tokens", number_tokens, METH_VARARGS,
     "number_tokens(table, text, separators) -> (the number of distinct tokens of each line, their numbers)"},
    {"token_names", of_tokens<false>, METH_VARARGS, "token_names(table, numbers) -> the tokens, each ended by LF"},
    {"sort_tokens", of_tokens<true>, METH_VARARGS, "sort_tokens(table, numbers) -> the numbers in the order of the tokens"},
    {"take_column", take_column, METH_VARARGS, "take_column(text, column) -> a cell of each line, each ended by LF"},
    {"count_tokens", count_tokens, METH_O, "count_tokens(table) -> how many there are"},
    {"rewrite_lines", rewrite_lines, METH_VARARGS,
     "rewrite_lines(outputs, first_line, words, shares, weights, tuning, bits) -> (the new lines, the index of the first line "
     "that the twin must rewrite or -1)"},
    {"format_entries", format_entries, METH_VARARGS, "format_entries(words, numbers, least, most) -> the output line"},
    {"pack_words", pack_words, METH_VARARGS, "pack_words(words) -> the lines as words that can be hashed fast"},
    {"array_losses", array_losses, METH_VARARGS,
     "array_losses(words, values, ids, offsets, rests, expected, lines, bits, unit) -> (losses, bound, index of the first "
     "row at fault or -1)"},
    {"row_losses", row_losses, METH_VARARGS,
     "row_losses(offsets, starts, text, values, probabilities, expected, bits, first_line) -> (losses, bound, far_above_one, index "
     "of the first row that is no line or -1)"},
    {"write_rows", write_rows, METH_VARARGS,
     "write_rows(offsets, starts, text, values, probabilities) -> (lines, index of the first row that is no line or -1)"},
    {"read_rows", read_rows, METH_VARARGS,
     "read_rows(lines) -> (offsets, starts, text, values, probabilities); None if they are of several kinds"},
    {"word_table", word_table, METH_VARARGS, "word_table(words, alias) -> a table that numbers words"},
    {"table_words", table_words, METH_O, "table_words(table) -> the words, each with an LF behind it"},
    {"number_words", number_words, METH_VARARGS, "number_words(table, text, spaces, grow) -> (ids, words by line)"},
    {"read_arpa_rows", read_arpa_rows, METH_VARARGS,
     "read_arpa_rows(table, block, order, grow) -> (ids, logs, back-offs), None if the reference must read them"},
    {"write_arpa_rows", write_arpa_rows, METH_VARARGS,
     "write_arpa_rows(table, columns, logs, back-offs) -> the rows of an ARPA file"},
    {"key_index", key_index, METH_VARARGS, "key_index(keys, logs, back-offs) -> an index of different numbers"},
    {"find_keys", find_keys, METH_VARARGS, "find_keys(index, wanted) -> the row of each number, -1 if there is none"},
    {"score_ngrams", score_ngrams, METH_VARARGS, "score_ngrams(table, indexes, text, bos, eos) -> (log10s, lengths of n-grams, tokens by line)"},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot SLOTS[] = {{0, nullptr}};

PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_native", "The native kernel; see geval_py.scoring.kernel.native.", 0, METHODS, SLOTS, nullptr, nullptr,
    nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__native() { return PyModuleDef_Init(&MODULE); }
