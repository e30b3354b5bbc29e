// Tokens and the figures of their lines, for Python.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
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
    Buffer text, separators;
    if (!PyArg_ParseTuple(arguments, "Oy*y*", &capsule, &text.view, &separators.view)) return nullptr;
    TokenTable* table = table_in(capsule);
    if (!table) return nullptr;
    std::vector<std::int64_t> counts, numbers;
    if (!without_gil([&] { table->number(text.text(), separators.text(), counts, numbers); })) return nullptr;
    return Py_BuildValue("(NN)", bytes_of(counts), bytes_of(numbers));
}

// Gives the tokens of numbers, or sorts the numbers by them.
template <bool sorts>
PyObject* of_tokens(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer buffer;
    if (!PyArg_ParseTuple(arguments, "Oy*", &capsule, &buffer.view)) return nullptr;
    const TokenTable* table = table_in(capsule);
    if (!table) return nullptr;
    if (!have_eight_bytes({&buffer})) return raise_value_error("a number of a token has 8 bytes");
    std::string names;
    std::vector<std::int64_t> numbers;
    bool known = true;
    if (!without_gil([&] {
            numbers.resize(buffer.text().size() / sizeof(std::int64_t));
            if (!numbers.empty()) std::memcpy(numbers.data(), buffer.text().begin, numbers.size() * sizeof(std::int64_t));
            known = table->has(numbers.data(), numbers.size());
            if (known && sorts) table->sort(numbers.data(), numbers.size());
            if (known && !sorts) names = table->names(numbers.data(), numbers.size());
        }))
        return nullptr;
    if (!known) {
        PyErr_SetString(PyExc_IndexError, "no token has this number");
        return nullptr;
    }
    return sorts ? bytes_of(numbers) : PyBytes_FromStringAndSize(names.data(), static_cast<Py_ssize_t>(names.size()));
}

PyObject* frequent_tokens(PyObject*, PyObject* arguments) {
    Buffer text, separators, classes;
    Py_ssize_t least;
    if (!PyArg_ParseTuple(arguments, "y*y*y*n", &text.view, &separators.view, &classes.view, &least)) return nullptr;
    FrequentTokens found;
    if (!without_gil([&] {
            found = frequent_tokens(text.text(), separators.text(), classes.text(),
                                    static_cast<std::size_t>(std::max<Py_ssize_t>(0, least)));
        }))
        return nullptr;
    PyObject* names = PyBytes_FromStringAndSize(found.names.data(), static_cast<Py_ssize_t>(found.names.size()));
    return Py_BuildValue("(NNN)", names, bytes_of(found.counts), bytes_of(found.places));
}

PyObject* take_column(PyObject*, PyObject* arguments) {
    Buffer text;
    Py_ssize_t column;
    if (!PyArg_ParseTuple(arguments, "y*n", &text.view, &column)) return nullptr;
    std::string cells;
    if (!without_gil([&] { cells = take_column(text.text(), static_cast<std::size_t>(std::max<Py_ssize_t>(0, column))); }))
        return nullptr;
    return PyBytes_FromStringAndSize(cells.data(), static_cast<Py_ssize_t>(cells.size()));
}

PyObject* add_rows(PyObject*, PyObject* arguments) {
    PyObject *sums_object, *rows_object;
    Buffer sums, rows, places, numbers;
    if (!PyArg_ParseTuple(arguments, "OOy*y*", &sums_object, &rows_object, &places.view, &numbers.view) ||
        PyObject_GetBuffer(sums_object, &sums.view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE) < 0 ||
        PyObject_GetBuffer(rows_object, &rows.view, PyBUF_C_CONTIGUOUS) < 0)
        return nullptr;
    if (!have_eight_bytes({&sums, &rows, &places, &numbers}) || sums.view.ndim != 2 || rows.view.ndim != 2 ||
        sums.view.shape[1] != rows.view.shape[1] || places.view.len != numbers.view.len)
        return raise_value_error("the arrays do not fit together");
    const std::size_t columns = static_cast<std::size_t>(rows.view.shape[1]);
    bool in_range = true;
    Py_BEGIN_ALLOW_THREADS;
    const auto add = [&](auto width) {
        in_range = add_rows<decltype(width)::value>(
            static_cast<double*>(sums.view.buf), static_cast<std::size_t>(sums.view.shape[0]),
            static_cast<const double*>(rows.view.buf), static_cast<std::size_t>(rows.view.shape[0]), columns,
            static_cast<const std::int64_t*>(places.view.buf), static_cast<const std::int64_t*>(numbers.view.buf),
            static_cast<std::size_t>(places.view.len) / sizeof(std::int64_t));
    };
    switch (columns) {  // the usual numbers of columns are known to the compiler
        case 4: add(std::integral_constant<std::size_t, 4>()); break;
        case 5: add(std::integral_constant<std::size_t, 5>()); break;
        case 6: add(std::integral_constant<std::size_t, 6>()); break;
        case 7: add(std::integral_constant<std::size_t, 7>()); break;
        case 8: add(std::integral_constant<std::size_t, 8>()); break;
        case 10: add(std::integral_constant<std::size_t, 10>()); break;
        case 11: add(std::integral_constant<std::size_t, 11>()); break;
        default: add(std::integral_constant<std::size_t, 0>());
    }
    Py_END_ALLOW_THREADS;
    if (!in_range) {
        PyErr_SetString(PyExc_IndexError, "no row has this number");
        return nullptr;
    }
    Py_RETURN_NONE;
}

PyObject* count_tokens(PyObject*, PyObject* capsule) {
    const TokenTable* table = table_in(capsule);
    return table ? PyLong_FromSize_t(table->size()) : nullptr;
}

}  // namespace
