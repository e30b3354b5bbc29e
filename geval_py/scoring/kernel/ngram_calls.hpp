// Models of n-grams, for Python.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "arpa_rows.hpp"
#include "calls.hpp"
#include "decoding.hpp"
#include "key_index.hpp"
#include "word_table.hpp"

namespace {

constexpr char WORD_TABLE[] = "geval_py.WordTable", SPACES[] = "\t\n\v\f\r ";
constexpr std::int32_t START = 1, END = 2;

PyObject* word_table(PyObject*, PyObject* arguments) {
    Buffer words, alias;
    if (!PyArg_ParseTuple(arguments, "y*y*", &words.view, &alias.view)) return nullptr;
    std::unique_ptr<WordTable> table;
    if (!without_gil([&] { table = std::make_unique<WordTable>(words.text(), alias.text()); })) return nullptr;
    return capsule_of(std::move(table), WORD_TABLE);
}

PyObject* table_words(PyObject*, PyObject* capsule) {
    auto* table = static_cast<WordTable*>(PyCapsule_GetPointer(capsule, WORD_TABLE));
    return table ? bytes_of(table->text()) : nullptr;
}

PyObject* number_words(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer text, spaces;
    int grow;
    if (!PyArg_ParseTuple(arguments, "Oy*y*p", &capsule, &text.view, &spaces.view, &grow)) return nullptr;
    auto* table = static_cast<WordTable*>(PyCapsule_GetPointer(capsule, WORD_TABLE));
    NumberedLines found;
    if (!table || !without_gil([&] {
            const std::lock_guard<std::mutex> lock(table->mutex);
            found = number_words(*table, text.text(), spaces.text(), grow);
        }))
        return nullptr;
    return Py_BuildValue("(NN)", bytes_of(found.ids), bytes_of(found.lengths));
}

PyObject* read_arpa_rows(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer block;
    int order, grow;
    if (!PyArg_ParseTuple(arguments, "Oy*ip", &capsule, &block.view, &order, &grow)) return nullptr;
    auto* table = static_cast<WordTable*>(PyCapsule_GetPointer(capsule, WORD_TABLE));
    ArpaRows found;
    bool well_formed = false;
    if (!table || !without_gil([&] {
            const std::lock_guard<std::mutex> lock(table->mutex);
            std::string copy(block.text().begin, block.text().end);
            well_formed = read_arpa_rows(*table, padded(copy), order, grow, found);
        }))
        return nullptr;
    if (!well_formed) Py_RETURN_NONE;
    return Py_BuildValue("(NNN)", bytes_of(found.ids), bytes_of(found.logs), bytes_of(found.backoffs));
}

PyObject* write_arpa_rows(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer columns, logs, backoffs;
    if (!PyArg_ParseTuple(arguments, "Oy*y*y*", &capsule, &columns.view, &logs.view, &backoffs.view)) return nullptr;
    auto* table = static_cast<WordTable*>(PyCapsule_GetPointer(capsule, WORD_TABLE));
    const std::size_t rows = length_of<double>(logs), ids = length_of<std::int32_t>(columns);
    if ((rows ? ids % rows : ids) || (backoffs.view.len && backoffs.view.len != logs.view.len))
        return raise_value_error("the columns differ in length");
    std::string out;
    bool are_numbered = true;
    if (!table || !writing([&] {
            const double* last = backoffs.view.len ? numbers_of<double>(backoffs) : nullptr;
            are_numbered = write_arpa_rows(*table, numbers_of<std::int32_t>(columns), rows ? ids / rows : 0, rows,
                                           numbers_of<double>(logs), last, out);
        }))
        return nullptr;
    return are_numbered ? bytes_of(out) : raise_value_error("a row has a word that does not exist");
}

constexpr char KEY_INDEX[] = "geval_py.KeyIndex";

// The n-grams of an order: an index, the numbers that it looks at, log10 probabilities, and back-offs.
struct HeldIndex {
    Buffer keys, logs, backoffs;
    std::unique_ptr<KeyIndex> index;
};

PyObject* key_index(PyObject*, PyObject* arguments) {
    auto held = std::make_unique<HeldIndex>();
    if (!PyArg_ParseTuple(arguments, "y*y*y*", &held->keys.view, &held->logs.view, &held->backoffs.view)) return nullptr;
    const std::size_t number = length_of<std::int64_t>(held->keys);
    if (number >> 31) return raise_value_error("there are too many keys");
    if (length_of<double>(held->logs) != number || length_of<double>(held->backoffs) != number)
        return raise_value_error("the columns differ in length");
    if (!without_gil([&] { held->index = std::make_unique<KeyIndex>(numbers_of<std::int64_t>(held->keys), number); }))
        return nullptr;
    return capsule_of(std::move(held), KEY_INDEX);
}

PyObject* find_keys(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer wanted;
    if (!PyArg_ParseTuple(arguments, "Oy*", &capsule, &wanted.view)) return nullptr;
    auto* held = static_cast<HeldIndex*>(PyCapsule_GetPointer(capsule, KEY_INDEX));
    std::vector<std::int32_t> rows;
    if (!held || !without_gil([&] {
            rows.resize(length_of<std::int64_t>(wanted));
            held->index->find(numbers_of<std::int64_t>(wanted), rows.size(), rows.data());
        }))
        return nullptr;
    return bytes_of(rows);
}

// Scores texts; the rows that end at a token are the contexts of the next one, -1 where there is none.
PyObject* score_ngrams(PyObject*, PyObject* arguments) {
    PyObject *capsule, *held;
    Buffer text;
    int bos, eos;
    if (!PyArg_ParseTuple(arguments, "OO!y*pp", &capsule, &PyTuple_Type, &held, &text.view, &bos, &eos)) return nullptr;
    auto* table = static_cast<WordTable*>(PyCapsule_GetPointer(capsule, WORD_TABLE));
    std::vector<const HeldIndex*> levels;
    for (Py_ssize_t k = 0; table && k < PyTuple_Size(held); ++k)
        levels.push_back(static_cast<HeldIndex*>(PyCapsule_GetPointer(PyTuple_GetItem(held, k), KEY_INDEX)));
    NumberedLines lines;
    std::vector<double> logs;
    std::vector<std::int32_t> rows, lengths;
    if (PyErr_Occurred() || !without_gil([&] {
            lines = number_words(*table, text.text(), {SPACES, SPACES + 6}, false);
            logs.reserve(lines.ids.size() + lines.lengths.size());
            auto id = lines.ids.begin();
            for (auto& size : lines.lengths) {
                rows.assign(levels.size() + 1, -1);
                if (bos) rows[0] = START;
                const auto words = std::exchange(size, size + eos);
                for (std::int64_t i = 0; i < size; ++i) {
                    const std::int32_t word = i == words ? END : std::max(*id++, 0);
                    std::int32_t context = 0, length = 0;
                    double log = 0;
                    for (std::size_t k = 0; k < levels.size(); ++k) {
                        const auto row = context < 0 ? -1 : levels[k]->index->row_of(std::int64_t{context} << 32 | word);
                        if (row >= 0) log = numbers_of<double>(levels[k]->logs)[row], length = static_cast<std::int32_t>(k + 1);
                        else if (k && context >= 0) log += numbers_of<double>(levels[k - 1]->backoffs)[context];
                        context = std::exchange(rows[k], row);
                    }
                    logs.push_back(log);
                    lengths.push_back(word ? length : 0);
                }
            }
        }))
        return nullptr;
    return Py_BuildValue("(NNN)", bytes_of(logs), bytes_of(lengths), bytes_of(lines.lengths));
}

}  // namespace
