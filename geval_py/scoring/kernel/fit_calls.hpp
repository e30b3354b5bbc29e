// Isotonic fits, for Python.

#pragma once

#include <cstddef>
#include <vector>

#include "calls.hpp"
#include "isotonic.hpp"

namespace {

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
