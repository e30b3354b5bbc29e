// Distributions in arrays, for Python.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calls.hpp"
#include "decoding.hpp"
#include "packed_words.hpp"
#include "text.hpp"

namespace {

constexpr char PACKED_WORDS[] = "geval_py.PackedWords";

PyObject* pack_words(PyObject*, PyObject* arguments) {
    Buffer words;
    if (!PyArg_ParseTuple(arguments, "y*", &words.view)) return nullptr;
    std::unique_ptr<PackedWords> packed;
    if (!without_gil([&] { packed = std::make_unique<PackedWords>(words.text()); })) return nullptr;
    return capsule_of(std::move(packed), PACKED_WORDS);
}

// The numbers of an optional buffer; false if an error is set.
template <typename Number>
bool optional_numbers(PyObject* object, Buffer& buffer, const Number*& numbers, std::size_t& size) {
    numbers = nullptr, size = 0;
    if (object == Py_None) return true;
    if (PyObject_GetBuffer(object, &buffer.view, PyBUF_C_CONTIGUOUS) < 0) return false;
    numbers = numbers_of<Number>(buffer), size = length_of<Number>(buffer);
    return buffer.view.itemsize == sizeof(Number) || raise_value_error("the arrays do not fit together");
}

PyObject* array_losses(PyObject*, PyObject* arguments) {
    PyObject *capsule, *values_object, *ids_object, *rests_object;
    Buffer values, ids, rests, expected, lines;
    int bits, unit;
    if (!PyArg_ParseTuple(arguments, "OOOOy*y*ii", &capsule, &values_object, &ids_object, &rests_object, &expected.view,
                          &lines.view, &bits, &unit) ||
        !check_bits(bits))
        return nullptr;
    const auto* words = static_cast<const PackedWords*>(PyCapsule_GetPointer(capsule, PACKED_WORDS));
    if (!words || PyObject_GetBuffer(values_object, &values.view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) return nullptr;
    const Py_buffer& view = values.view;
    Rows<double> rows{static_cast<std::size_t>(lines.view.len) / 4, 0, static_cast<const char*>(view.buf), 0, nullptr, nullptr};
    std::size_t id_count, rest_count;
    if (!optional_numbers(ids_object, ids, rows.ids, id_count) ||
        !optional_numbers(rests_object, rests, rows.rests, rest_count))
        return nullptr;
    const bool is_float = view.format && !std::strcmp(view.format, "f");
    bool fits = (is_float || (view.format && !std::strcmp(view.format, "d"))) && (!rows.rests || rest_count == rows.count) &&
                view.ndim == 2 && static_cast<std::size_t>(view.shape[0]) == rows.count &&
                (view.shape[1] < 2 || view.strides[1] == view.itemsize);
    if (fits) {
        rows.size = static_cast<std::size_t>(view.shape[1]), rows.stride = view.strides[0];
        fits = rows.ids ? id_count == rows.count * rows.size : rows.size == words->size();
    }
    if (!fits || unit < 0 || unit > static_cast<int>(Unit::logits) || count_lines(expected.text()) != rows.count)
        return raise_value_error("the arrays do not fit together");
    std::vector<double> losses;
    const auto* numbers = static_cast<const std::uint32_t*>(lines.view.buf);
    std::ptrdiff_t fault = NONE;
    double bound = 0;
    if (!without_gil([&] {
            std::string copy(expected.text().begin, expected.text().end);
            const Text answers = padded(copy);
            losses.resize(rows.count);
            if (is_float) {
                const Rows<float> single{rows.count, rows.size, rows.values, rows.stride, rows.ids, rows.rests};
                RowScorer<float> scorer(*words, bits, static_cast<Unit>(unit));
                fault = scorer.score(single, answers, numbers, losses.data());
                bound = scorer.bound();
            } else {
                RowScorer<double> scorer(*words, bits, static_cast<Unit>(unit));
                fault = scorer.score(rows, answers, numbers, losses.data());
                bound = scorer.bound();
            }
        }))
        return nullptr;
    return Py_BuildValue("(Ndn)", array_of(losses), bound, static_cast<Py_ssize_t>(fault));
}

}  // namespace
