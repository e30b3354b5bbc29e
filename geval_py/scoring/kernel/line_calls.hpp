// Lines of outputs, for Python.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "block.hpp"
#include "calls.hpp"
#include "decoding.hpp"
#include "formatting.hpp"
#include "guesses.hpp"
#include "profile.hpp"
#include "seeds.hpp"
#include "text.hpp"

namespace {

PyObject* score_lines(PyObject*, PyObject* arguments) {
    Buffer outputs, expected;
    int bits;
    unsigned long long first_line;
    int thorough;
    if (!PyArg_ParseTuple(arguments, "y*y*iKp", &outputs.view, &expected.view, &bits, &first_line, &thorough))
        return nullptr;
    if (!check_bits(bits)) return nullptr;
    const std::size_t lines = count_lines(expected.text());
    PyObject* losses = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(lines * sizeof(double)));
    PyObject* flags = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(lines * sizeof(std::uint32_t)));
    if (!losses || !flags) {
        Py_XDECREF(losses);
        Py_XDECREF(flags);
        return nullptr;
    }
    Found found;
    auto* loss_values = reinterpret_cast<double*>(PyBytes_AsString(losses));
    auto* flag_values = reinterpret_cast<std::uint32_t*>(PyBytes_AsString(flags));
    const bool enough_memory = without_gil([&] {
        found = score_block(outputs.text(), expected.text(), lines, bits, first_line, thorough != 0, loss_values,
                            flag_values);
    });
    if (!enough_memory || !found.equal) {
        Py_DECREF(losses);
        Py_DECREF(flags);
        return enough_memory ? wrong_lines() : nullptr;
    }
    return Py_BuildValue("(NNnnd)", losses, flags, static_cast<Py_ssize_t>(found.malformed),
                         static_cast<Py_ssize_t>(found.undecided), found.bound);
}

PyObject* reseeded_losses(PyObject*, PyObject* arguments) {
    Buffer outputs, expected;
    int bits, seeds;
    unsigned long long first_line;
    if (!PyArg_ParseTuple(arguments, "y*y*iKi", &outputs.view, &expected.view, &bits, &first_line, &seeds)) return nullptr;
    if (!check_bits(bits)) return nullptr;
    std::vector<double> losses;
    std::ptrdiff_t malformed = NONE;
    bool equal = false;
    if (!without_gil([&] {
            malformed = score_under_seeds(outputs.text(), expected.text(), count_lines(expected.text()), bits, first_line,
                                          static_cast<std::size_t>(std::max(0, seeds)), losses, equal);
        }))
        return nullptr;
    if (malformed == NONE && !equal) return wrong_lines();
    return Py_BuildValue("(Nn)", bytes_of(losses), static_cast<Py_ssize_t>(malformed));
}

PyObject* line_profiles(PyObject*, PyObject* arguments) {
    Buffer outputs, expected;
    int bits, draws;
    unsigned long long first_line;
    if (!PyArg_ParseTuple(arguments, "y*y*iKi", &outputs.view, &expected.view, &bits, &first_line, &draws)) return nullptr;
    if (bits < 1 || bits > 24 || draws < 0 || draws > MAX_DRAWS) {
        PyErr_SetString(PyExc_ValueError, "bits is from 1 to 24, draws from 0 to 10000");
        return nullptr;
    }
    ProfiledBlock block;
    if (!without_gil([&] {
            block = profile_block(outputs.text(), expected.text(), count_lines(expected.text()), bits, first_line, draws);
        }))
        return nullptr;
    if (!block.equal) return wrong_lines();
    return Py_BuildValue("(NNn)", bytes_of(block.columns), bytes_of(block.histogram),
                         static_cast<Py_ssize_t>(block.malformed));
}

PyObject* read_guesses(PyObject*, PyObject* arguments) {
    Buffer outputs, expected;
    int bits;
    unsigned long long first_line;
    if (!PyArg_ParseTuple(arguments, "y*y*iK", &outputs.view, &expected.view, &bits, &first_line)) return nullptr;
    if (!check_bits(bits)) return nullptr;
    GuessList guesses;
    bool equal = true;
    if (!without_gil([&] { equal = guesses.read(outputs.text(), expected.text(), bits, first_line); })) return nullptr;
    if (!equal) return wrong_lines();
    return Py_BuildValue("(NNNNn)", bytes_of(guesses.counts), bytes_of(guesses.masses), bytes_of(guesses.hits),
                         bytes_of(guesses.rests), static_cast<Py_ssize_t>(guesses.malformed));
}

PyObject* bucket_shares(PyObject*, PyObject* arguments) {
    Buffer words, shares, expected;
    int bits;
    unsigned long long first_line;
    if (!PyArg_ParseTuple(arguments, "y*y*y*iK", &words.view, &shares.view, &expected.view, &bits, &first_line))
        return nullptr;
    if (!check_bits(bits)) return nullptr;
    std::vector<double> sums;
    bool equal = true;
    if (!without_gil([&] {
            equal = sum_shares(words.text(), static_cast<const double*>(shares.view.buf),
                               static_cast<std::size_t>(shares.view.len) / sizeof(double), expected.text(), bits, first_line,
                               sums);
        }))
        return nullptr;
    if (!equal) {
        PyErr_SetString(PyExc_ValueError, "words and shares differ in number");
        return nullptr;
    }
    return bytes_of(sums);
}

PyObject* format_entries(PyObject*, PyObject* arguments) {
    Buffer words, numbers;
    double least, most;
    if (!PyArg_ParseTuple(arguments, "y*y*dd", &words.view, &numbers.view, &least, &most)) return nullptr;
    const auto* values = static_cast<const double*>(numbers.view.buf);
    const std::size_t count = static_cast<std::size_t>(numbers.view.len) / sizeof(double);
    std::string line;
    bool fits = true;
    const auto format = [&] { fits = format_entries(words.text(), values, count, least, most, line); };
#if defined(GEVAL_TO_CHARS)
    if (!without_gil(format)) return nullptr;
#else
    if (!with_gil(format)) return nullptr;  // Python writes the numbers
#endif
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "words and numbers differ in number, or a number is out of range");
        return nullptr;
    }
    return PyUnicode_DecodeUTF8(line.data(), static_cast<Py_ssize_t>(line.size()), nullptr);
}

PyObject* count_lines(PyObject*, PyObject* arguments) {
    Buffer text;
    if (!PyArg_ParseTuple(arguments, "y*", &text.view)) return nullptr;
    std::size_t lines;
    Py_BEGIN_ALLOW_THREADS;
    lines = count_lines(text.text());
    Py_END_ALLOW_THREADS;
    return PyLong_FromSize_t(lines);
}

// For the tests: a loss does not show the last bit of a number.
PyObject* read_number(PyObject*, PyObject* arguments) {
    Buffer text;
    if (!PyArg_ParseTuple(arguments, "y*", &text.view)) return nullptr;
    std::string copy(text.text().begin, text.text().end);
    const Text number = padded(copy);
    double value = 0;
    if (read_number(number.begin, value) != number.end) Py_RETURN_NONE;
    return PyFloat_FromDouble(value);
}

}  // namespace
