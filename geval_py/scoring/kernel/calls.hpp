// What all functions that Python calls have in common: buffers, errors, work without the GIL, objects that Python holds.

#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

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

// Whether the items of all buffers have the size of a double and of an int64.
bool have_eight_bytes(std::initializer_list<const Buffer*> buffers) {
    return std::all_of(buffers.begin(), buffers.end(), [](const Buffer* buffer) { return buffer->view.itemsize == 8; });
}

template <typename Number>
PyObject* bytes_of(const std::vector<Number>& numbers) {
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(numbers.data()),
                                     static_cast<Py_ssize_t>(numbers.size() * sizeof(Number)));
}

PyObject* raise_value_error(const char* message) {
    PyErr_SetString(PyExc_ValueError, message);
    return nullptr;
}

// Whether the number of bits is in range; if not, an error is set.
bool check_bits(int bits) {
    if (bits >= 1 && bits <= 24) return true;
    PyErr_SetString(PyExc_ValueError, "bits is from 1 to 24");
    return false;
}

PyObject* wrong_lines() {
    PyErr_SetString(PyExc_ValueError, "the two blocks differ in their number of lines");
    return nullptr;
}

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
    const bool enough_memory = has_memory(work);
    if (!enough_memory) PyErr_NoMemory();
    return enough_memory;
}

// Runs work without the GIL; false if memory ends, with an error set.
template <typename Work>
bool without_gil(Work work) {
    bool enough_memory;
    Py_BEGIN_ALLOW_THREADS;
    enough_memory = has_memory(work);
    Py_END_ALLOW_THREADS;
    if (!enough_memory) PyErr_NoMemory();
    return enough_memory;
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
