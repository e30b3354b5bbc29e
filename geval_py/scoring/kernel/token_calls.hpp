// Tokens and the figures of their lines, for Python.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "tokens.hpp"

namespace {

constexpr char TOKEN_TABLE[] = "geval_py.TokenTable";

TokenTable* table_in(PyObject* capsule) { return static_cast<TokenTable*>(PyCapsule_GetPointer(capsule, TOKEN_TABLE)); }

PyObject* token_table(PyObject*, PyObject*) {
    std::unique_ptr<TokenTable> table;
    if (!with_gil([&] { table = std::make_unique<TokenTable>(); })) return nullptr;
    return capsule_of(std::move(table), TOKEN_TABLE);
}

PyObject* number_tokens(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer text, separators, seen;
    int least = 0;
    if (!PyArg_ParseTuple(arguments, "Oy*y*|w*i", &capsule, &text.view, &separators.view, &seen.view, &least)) return nullptr;
    TokenTable* table = table_in(capsule);
    if (!table) return nullptr;
    const Sightings sightings{static_cast<unsigned char*>(seen.view.buf), length_of<unsigned char>(seen), least};
    std::vector<std::int64_t> counts, numbers;
    if (!without_gil([&] { table->number(text.text(), separators.text(), sightings, counts, numbers); })) return nullptr;
    return Py_BuildValue("(NN)", array_of(counts), array_of(numbers));
}

// Gives the tokens of numbers, or sorts the numbers by them.
template <bool sorts>
PyObject* of_tokens(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer buffer;
    if (!PyArg_ParseTuple(arguments, "Oy*", &capsule, &buffer.view)) return nullptr;
    const TokenTable* table = table_in(capsule);
    if (!table) return nullptr;
    if (buffer.view.itemsize != sizeof(std::int64_t)) return raise_value_error("a number of a token has 8 bytes");
    std::string names;
    std::vector<std::int64_t> numbers;
    bool are_numbered = true;
    if (!without_gil([&] {
            const auto* begin = numbers_of<std::int64_t>(buffer);
            numbers.assign(begin, begin + length_of<std::int64_t>(buffer));
            are_numbered = table->has(numbers.data(), numbers.size());
            if (are_numbered && sorts) table->sort(numbers.data(), numbers.size());
            if (are_numbered && !sorts) names = table->names(numbers.data(), numbers.size());
        }))
        return nullptr;
    if (!are_numbered) {
        PyErr_SetString(PyExc_IndexError, "no token has this number");
        return nullptr;
    }
    return sorts ? array_of(numbers) : bytes_of(names);
}

PyObject* take_column(PyObject*, PyObject* arguments) {
    Buffer text;
    Py_ssize_t column;
    if (!PyArg_ParseTuple(arguments, "y*n", &text.view, &column)) return nullptr;
    std::string cells;
    if (!without_gil([&] { cells = take_column(text.text(), static_cast<std::size_t>(std::max<Py_ssize_t>(0, column))); }))
        return nullptr;
    return bytes_of(cells);
}

PyObject* count_tokens(PyObject*, PyObject* capsule) {
    const TokenTable* table = table_in(capsule);
    return table ? PyLong_FromSize_t(table->size()) : nullptr;
}

}  // namespace
