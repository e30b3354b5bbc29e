// What all functions that Python calls have in common: buffers, errors, work without the GIL, objects that Python holds.

#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "formatting.hpp"
#include "text.hpp"

namespace {

class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() {
        if (view.obj) PyBuffer_Release(&view);
    }
    Text text() const {
        const char* begin = static_cast<const char*>(view.buf);
        return {begin, begin + view.len};
    }
    Py_buffer view{};
};

template <typename Number>
const Number* numbers_of(const Buffer& buffer) {
    return static_cast<const Number*>(buffer.view.buf);
}

template <typename Number>
std::size_t length_of(const Buffer& buffer) {
    return static_cast<std::size_t>(buffer.view.len) / sizeof(Number);
}

// The bytes of a string or of a vector of numbers.
template <typename Items>
PyObject* bytes_of(const Items& items) {
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(items.data()),
                                     static_cast<Py_ssize_t>(items.size() * sizeof(items[0])));
}

// An array.array of doubles, or of whole numbers of eight bytes, or of four without a sign.
template <typename Number>
PyObject* array_of(const Number* numbers, std::size_t count) {
    PyObject* module = PyImport_ImportModule("array");
    if (!module) return nullptr;
    const char* type = std::is_same_v<Number, double> ? "d" : sizeof(Number) == 8 ? "q" : "I";
    PyObject* array = PyObject_CallMethod(module, "array", "s", type);
    Py_DECREF(module);
    if (!array || !count) return array;
    auto* bytes = const_cast<char*>(reinterpret_cast<const char*>(numbers));
    PyObject* view = PyMemoryView_FromMemory(bytes, static_cast<Py_ssize_t>(count * sizeof(Number)), PyBUF_READ);
    PyObject* nothing = view ? PyObject_CallMethod(array, "frombytes", "O", view) : nullptr;
    Py_XDECREF(view);
    if (nothing) {
        Py_DECREF(nothing);
        return array;
    }
    Py_DECREF(array);
    return nullptr;
}

template <typename Number>
PyObject* array_of(const std::vector<Number>& numbers) {
    return array_of(numbers.data(), numbers.size());
}

// A tuple of as many columns, which follow one another.
PyObject* columns_of(const std::vector<double>& numbers, std::size_t count) {
    const std::size_t size = numbers.size() / std::max<std::size_t>(1, count);
    PyObject* columns = PyTuple_New(static_cast<Py_ssize_t>(count));
    for (std::size_t i = 0; columns && i < count; ++i) {
        PyObject* column = array_of(size ? numbers.data() + i * size : nullptr, size);
        if (!column || PyTuple_SetItem(columns, static_cast<Py_ssize_t>(i), column)) {
            Py_DECREF(columns);
            return nullptr;
        }
    }
    return columns;
}

// Lets the reference parse a malformed line of a block, by its index, and raise.
PyObject* raise_malformed(const Buffer& outputs, int bits, unsigned long long first_line, std::ptrdiff_t index) {
    PyObject* reference = PyImport_ImportModule("geval_py.scoring.kernel.reference");
    if (!reference) return nullptr;
    PyObject* nothing = PyObject_CallMethod(reference, "raise_malformed", "OiKn", outputs.view.obj, bits, first_line,
                                            static_cast<Py_ssize_t>(index));
    Py_DECREF(reference);
    Py_XDECREF(nothing);
    return nullptr;
}

PyObject* raise_value_error(const char* message) {
    PyErr_SetString(PyExc_ValueError, message);
    return nullptr;
}

// Whether the number of bits is in range; if not, an error is set.
bool check_bits(int bits) { return (bits >= 1 && bits <= 24) || raise_value_error("bits is from 1 to 24"); }

PyObject* wrong_lines() { return raise_value_error("the two blocks differ in their number of lines"); }

// Runs work; false if memory ends.
template <typename Work>
bool has_memory(Work work) {
    try {
        work();
    } catch (const std::bad_alloc&) {
        return false;
    } catch (const std::length_error&) {
        return false;
    }
    return true;
}

// Runs short work with the GIL; false if memory ends, with an error set.
template <typename Work>
bool with_gil(Work work) {
    return has_memory(work) || PyErr_NoMemory();
}

// Runs work without the GIL; false if memory ends, with an error set.
template <typename Work>
bool without_gil(Work work) {
    bool enough_memory;
    Py_BEGIN_ALLOW_THREADS;
    enough_memory = has_memory(work);
    Py_END_ALLOW_THREADS;
    return enough_memory || PyErr_NoMemory();
}

// Runs work that writes numbers: with the GIL if Python writes them; false if memory ends, with an error set.
template <typename Work>
bool writing(Work work) {
#if defined(GEVAL_TO_CHARS)
    return without_gil(work);
#else
    return with_gil(work);
#endif
}

// A C++ object that Python holds.
template <typename Object>
PyObject* capsule_of(std::unique_ptr<Object> object, const char* name) {
    PyObject* capsule = PyCapsule_New(object.get(), name, [](PyObject* self) {
        delete static_cast<Object*>(PyCapsule_GetPointer(self, PyCapsule_GetName(self)));
    });
    if (capsule) object.release();
    return capsule;
}

}  // namespace
