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
    const double* values = static_cast<const double*>(numbers.view.buf);
    const std::size_t size = static_cast<std::size_t>(numbers.view.len) / sizeof(double);
    for (std::size_t i = 0; i < size && sum.is_finite(); ++i) sum.add(values[i]);
    total = sum.is_finite() ? sum.rounded() : std::accumulate(values, values + size, 0.0);
    Py_END_ALLOW_THREADS;
    return PyFloat_FromDouble(total);
}

PyObject* isotonic(PyObject*, PyObject* arguments) {
    Buffer values, weights;
    if (!PyArg_ParseTuple(arguments, "y*y*", &values.view, &weights.view)) return nullptr;
    if (values.view.len != weights.view.len) {
        PyErr_SetString(PyExc_ValueError, "values and weights differ in number");
        return nullptr;
    }
    std::vector<double> rising;
    if (!without_gil([&] {
            rising = isotonic(static_cast<const double*>(values.view.buf), static_cast<const double*>(weights.view.buf),
                             static_cast<std::size_t>(values.view.len) / sizeof(double));
        }))
        return nullptr;
    return array_of(rising);
}

}  // namespace
