// Tokens and the figures of their lines, for Python.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "calls.hpp"
#include "tokens.hpp"

namespace {

// The class TokenTable.
struct TokenTableObject {
    PyObject_HEAD
    TokenTable* table;
};

TokenTable* table_in(PyObject* self) { return reinterpret_cast<TokenTableObject*>(self)->table; }

PyObject* new_token_table(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* self = PyType_GenericAlloc(type, 0);
    if (self && !with_gil([&] { reinterpret_cast<TokenTableObject*>(self)->table = new TokenTable(); })) Py_CLEAR(self);
    return self;
}

void delete_token_table(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    delete table_in(self);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

Py_ssize_t count_tokens(PyObject* self) { return static_cast<Py_ssize_t>(table_in(self)->size()); }

PyObject* number_tokens(PyObject* self, PyObject* arguments) {
    Buffer text, separators, seen;
    int least = 0;
    if (!PyArg_ParseTuple(arguments, "y*y*|w*i", &text.view, &separators.view, &seen.view, &least)) return nullptr;
    TokenTable* table = table_in(self);
    const Sightings sightings{static_cast<unsigned char*>(seen.view.buf), length_of<unsigned char>(seen), least};
    std::vector<std::int64_t> counts, numbers;
    if (!without_gil([&] { table->number(text.text(), separators.text(), sightings, counts, numbers); })) return nullptr;
    return Py_BuildValue("(NN)", array_of(counts), array_of(numbers));
}

// A list of texts, each of which ends in LF.
PyObject* list_of(const std::string& texts) {
    PyObject* list = PyList_New(0);
    for (std::size_t start = 0, end; list && start < texts.size(); start = end + 1) {
        end = texts.find('\n', start);
        PyObject* text = PyUnicode_DecodeUTF8(texts.data() + start, static_cast<Py_ssize_t>(end - start), nullptr);
        if (!text || PyList_Append(list, text)) Py_CLEAR(list);
        Py_XDECREF(text);
    }
    return list;
}

// Gives the tokens of numbers, or sorts the numbers by them.
template <bool sorts>
PyObject* of_tokens(PyObject* self, PyObject* arguments) {
    Buffer buffer;
    if (!PyArg_ParseTuple(arguments, "y*", &buffer.view)) return nullptr;
    const TokenTable* table = table_in(self);
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
    return sorts ? array_of(numbers) : list_of(names);
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

PyMethodDef TOKEN_TABLE_METHODS[] = {
    {"number", number_tokens, METH_VARARGS, nullptr},
    {"names", of_tokens<false>, METH_VARARGS, nullptr},
    {"sorted", of_tokens<true>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot TOKEN_TABLE_SLOTS[] = {
    {Py_tp_new, reinterpret_cast<void*>(new_token_table)},
    {Py_tp_dealloc, reinterpret_cast<void*>(delete_token_table)},
    {Py_sq_length, reinterpret_cast<void*>(count_tokens)},
    {Py_tp_methods, TOKEN_TABLE_METHODS},
    {0, nullptr},
};

PyType_Spec TOKEN_TABLE = {
    "geval_py.scoring.kernel._native.TokenTable", sizeof(TokenTableObject), 0, Py_TPFLAGS_DEFAULT, TOKEN_TABLE_SLOTS,
};

}  // namespace
