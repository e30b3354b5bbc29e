// Exact sums and isotonic fits, for Python.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "calls.hpp"
#include "exact_sum.hpp"
#include "isotonic.hpp"

namespace {

PyObject* exact_sum(PyObject*, PyObject* argument) {
    Buffer numbers;
    if (PyObject_GetBuffer(argument, &numbers.view, PyBUF_C_CONTIGUOUS)) return nullptr;
    Expansion sum;
    double found = 0;
    Py_BEGIN_ALLOW_THREADS;
    const double* values = static_cast<const double*>(numbers.view.buf);
    const std::size_t size = static_cast<std::size_t>(numbers.view.len) / sizeof(double);
    for (std::size_t i = 0; i < size && sum.is_finite(); ++i) sum.add(values[i]);
    found = sum.is_finite() ? sum.rounded() : std::accumulate(values, values + size, 0.0);
    Py_END_ALLOW_THREADS;
    return PyFloat_FromDouble(found);
}

PyObject* isotonic(PyObject*, PyObject* arguments) {
    Buffer values, weights;
    if (!PyArg_ParseTuple(arguments, "y*y*", &values.view, &weights.view)) return nullptr;
    if (values.view.len != weights.view.len) {
        PyErr_SetString(PyExc_ValueError, "values and weights differ in number");
        return nullptr;
    }
    std::vector<double> found;
    if (!without_gil([&] {
            found = isotonic(static_cast<const double*>(values.view.buf), static_cast<const double*>(weights.view.buf),
                             static_cast<std::size_t>(values.view.len) / sizeof(double));
        }))
        return nullptr;
    return bytes_of(found);
}

// Whether all numbers are below a size.
bool are_below(const Buffer& numbers, std::size_t size) {
    const auto* begin = static_cast<const std::int64_t*>(numbers.view.buf);
    return std::all_of(begin, begin + numbers.view.len / 8,
                       [size](std::int64_t number) { return static_cast<std::uint64_t>(number) < size; });
}

PyObject* honest_fits(PyObject*, PyObject* arguments) {
    Buffer p, n, places, ends, starts, others, other_bins;
    unsigned long long state[4];
    Py_ssize_t draws, other_count;
    if (!PyArg_ParseTuple(arguments, "(KKKK)ny*y*y*y*y*y*y*n", &state[0], &state[1], &state[2], &state[3], &draws, &p.view,
                          &n.view, &places.view, &ends.view, &starts.view, &others.view, &other_bins.view, &other_count))
        return nullptr;
    const Honest honest{
        numbers_of<double>(p), numbers_of<double>(n), length_of<double>(p), numbers_of<std::int64_t>(places),
        length_of<std::int64_t>(places), numbers_of<std::int64_t>(ends), numbers_of<std::int64_t>(starts),
        length_of<std::int64_t>(ends), length_of<std::int64_t>(starts),
        others.view.len ? numbers_of<double>(others) : nullptr, numbers_of<std::int64_t>(other_bins),
        static_cast<std::size_t>(std::max<Py_ssize_t>(0, other_count))};
    const auto* begin = honest.starts;
    if (!have_eight_bytes({&p, &n, &places, &ends, &starts, &others, &other_bins}) || honest.things >> 32 ||
        p.view.len != n.view.len || others.view.len != other_bins.view.len ||
        (honest.others && others.view.len != places.view.len) || draws < 0 || !are_below(places, honest.size) ||
        !are_below(ends, honest.size) || !are_below(starts, honest.size) ||
        !are_below(other_bins, honest.other_count) ||
        std::adjacent_find(begin, begin + honest.start_count, std::greater_equal<>()) != begin + honest.start_count)
        return raise_value_error("the arrays do not fit together");
    HonestFits found;
    if (!without_gil([&] {
            found = honest_fits(honest, Pcg64({state[1], state[0]}, {state[3], state[2]}), static_cast<std::size_t>(draws));
        }))
        return nullptr;
    return Py_BuildValue("(NNNN)", bytes_of(found.excesses), bytes_of(found.curves), bytes_of(found.bins),
                         bytes_of(found.other_bins));
}

}  // namespace
