// Exact sums and isotonic fits, for Python.

#pragma once

#include <cstddef>
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
    double total = 0;
    Py_BEGIN_ALLOW_THREADS;
    const double* values = numbers_of<double>(numbers);
    const std::size_t size = length_of<double>(numbers);
    for (std::size_t i = 0; i < size && sum.is_finite(); ++i) sum.add(values[i]);
    total = sum.is_finite() ? sum.rounded() : std::accumulate(values, values + size, 0.0);
    Py_END_ALLOW_THREADS;
    return PyFloat_FromDouble(total);
}

PyObject* isotonic(PyObject*, PyObject* arguments) {
    Buffer values, weights;
    if (!PyArg_ParseTuple(arguments, "y*y*", &values.view, &weights.view)) return nullptr;
    if (values.view.len != weights.view.len) return raise_value_error("values and weights differ in number");
    std::vector<double> rising;
    if (!without_gil([&] {
            rising = isotonic(numbers_of<double>(values), numbers_of<double>(weights), length_of<double>(values));
        }))
        return nullptr;
    return array_of(rising);
}

}  // namespace
