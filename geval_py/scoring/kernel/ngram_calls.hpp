// Models of n-grams, for Python.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
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

constexpr char WORD_TABLE[] = "geval_py.WordTable";

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
    Buffer text, starts, columns, logs, backoffs;
    if (!PyArg_ParseTuple(arguments, "y*y*y*y*y*", &text.view, &starts.view, &columns.view, &logs.view, &backoffs.view))
        return nullptr;
    const std::size_t rows = length_of<double>(logs), ids = length_of<std::int32_t>(columns);
    if (!length_of<std::int64_t>(starts) || (rows ? ids % rows : ids) ||
        (backoffs.view.len && backoffs.view.len != logs.view.len))
        return raise_value_error("the columns differ in length");
    const Words words{text.text().begin, numbers_of<std::int64_t>(starts), length_of<std::int64_t>(starts) - 1};
    if (words.starts[0] != 0 || words.starts[words.number] != text.view.len ||
        std::adjacent_find(words.starts, words.starts + words.number + 1, std::greater_equal<>()) !=
            words.starts + words.number + 1)
        return raise_value_error("the words do not start where they should");
    std::vector<char> out;
    bool are_numbered = true;
    if (!without_gil([&] {
            are_numbered = write_arpa_rows(words, numbers_of<std::int32_t>(columns), rows ? ids / rows : 0, rows,
                                    numbers_of<double>(logs),
                                    backoffs.view.len ? numbers_of<double>(backoffs) : nullptr, out);
        }))
        return nullptr;
    return are_numbered ? bytes_of(out) : raise_value_error("a row has a word that does not exist");
}

constexpr char KEY_INDEX[] = "geval_py.KeyIndex";

// An index, with the numbers that it looks at.
struct HeldIndex {
    Buffer keys;
    std::unique_ptr<KeyIndex> index;
};

PyObject* key_index(PyObject*, PyObject* arguments) {
    auto held = std::make_unique<HeldIndex>();
    if (!PyArg_ParseTuple(arguments, "y*", &held->keys.view)) return nullptr;
    const std::size_t number = length_of<std::int64_t>(held->keys);
    if (number >> 31) return raise_value_error("there are too many keys");
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

}  // namespace
