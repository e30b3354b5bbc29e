// The parts of Parquet files, for Python.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "calls.hpp"
#include "parquet_lists.hpp"
#include "text.hpp"
#include "thrift.hpp"

namespace {

constexpr char THRIFT_SHAPE[] = "geval_py.ThriftShape";

// Reads a shape as reading/thrift.py writes it: a number, a list of one shape, or shapes by the numbers of fields.
bool read_shape(PyObject* from, ThriftShape& shape) {
    if (PyDict_Check(from)) {
        shape.kind = ThriftReader::STRUCT;
        PyObject *key, *part;
        for (Py_ssize_t place = 0; PyDict_Next(from, &place, &key, &part);) {
            shape.fields.push_back(PyLong_AsLongLong(key));
            shape.parts.emplace_back();
            if (PyErr_Occurred() || !read_shape(part, shape.parts.back())) return false;
        }
        return true;
    }
    if (PyList_Check(from) && PyList_Size(from) == 1) {
        shape.kind = ThriftReader::LIST;
        shape.parts.emplace_back();
        return read_shape(PyList_GetItem(from, 0), shape.parts.back());
    }
    shape.kind = static_cast<int>(PyLong_AsLong(from));
    return !PyErr_Occurred();
}

PyObject* thrift_shape(PyObject*, PyObject* from) {
    auto shape = std::make_unique<ThriftShape>();
    if (!read_shape(from, *shape)) return nullptr;
    return capsule_of(std::move(shape), THRIFT_SHAPE);
}

PyObject* object_of(const ThriftValue& value) {
    switch (value.kind) {
    case ThriftValue::TRUTH: return PyBool_FromLong(value.number != 0);
    case ThriftValue::NUMBER: return PyLong_FromLongLong(value.number);
    case ThriftValue::TEXT:
        return PyBytes_FromStringAndSize(value.text.begin, static_cast<Py_ssize_t>(value.text.size()));
    case ThriftValue::LIST: {
        PyObject* list = PyList_New(static_cast<Py_ssize_t>(value.parts.size()));
        for (std::size_t i = 0; list && i < value.parts.size(); ++i) {
            PyObject* part = object_of(value.parts[i]);
            if (!part || PyList_SetItem(list, static_cast<Py_ssize_t>(i), part) < 0) Py_CLEAR(list);
        }
        return list;
    }
    default: {
        PyObject* fields = PyDict_New();
        for (std::size_t i = 0; fields && i < value.parts.size(); ++i) {
            PyObject *number = PyLong_FromLong(value.parts[i].field), *part = object_of(value.parts[i]);
            if (!number || !part || PyDict_SetItem(fields, number, part) < 0) Py_CLEAR(fields);
            Py_XDECREF(number);
            Py_XDECREF(part);
        }
        return fields;
    }
    }
}

PyObject* read_struct(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer data;
    Py_ssize_t most;
    if (!PyArg_ParseTuple(arguments, "Oy*n", &capsule, &data.view, &most)) return nullptr;
    const auto* shape = static_cast<ThriftShape*>(PyCapsule_GetPointer(capsule, THRIFT_SHAPE));
    if (!shape) return nullptr;
    if (most < 0) return raise_value_error("most is not negative");
    ThriftReader reader(data.text(), static_cast<std::uint64_t>(most));
    ThriftValue found;
    ThriftReader::Fault fault = ThriftReader::NO_FAULT;
    const auto read = [&] { fault = reader.read(*shape, found); };
    // The header of a page takes less time than other threads to give the GIL back.
    if (!(data.text().size() < 1 << 16 ? with_gil(read) : without_gil(read))) return nullptr;
    if (fault) return PyLong_FromLong(fault);
    PyObject* fields = object_of(found);
    if (!fields) return nullptr;
    return Py_BuildValue("(Nn)", fields, static_cast<Py_ssize_t>(reader.left().begin - data.text().begin));
}

constexpr char PARQUET_LISTS[] = "geval_py.ParquetLists";

PyObject* parquet_lists(PyObject*, PyObject* arguments) {
    int kind, definition;
    if (!PyArg_ParseTuple(arguments, "ii", &kind, &definition)) return nullptr;
    if (kind < 0 || kind >= ParquetLists::KINDS || definition < 1 || definition > 255)
        return raise_value_error("kind is from 0 to 4, definition from 1 to 255");
    std::unique_ptr<ParquetLists> lists;
    if (!without_gil([&] {
            lists = std::make_unique<ParquetLists>(static_cast<ParquetLists::Kind>(kind), static_cast<unsigned>(definition));
        }))
        return nullptr;
    return capsule_of(std::move(lists), PARQUET_LISTS);
}

ParquetLists* lists_in(PyObject* capsule) {
    return static_cast<ParquetLists*>(PyCapsule_GetPointer(capsule, PARQUET_LISTS));
}

PyObject* add_dictionary(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer values;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(arguments, "Oy*n", &capsule, &values.view, &count)) return nullptr;
    ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    if (count < 0) return raise_value_error("count is not negative");
    bool whole = false;
    if (!without_gil([&] { whole = lists->add_dictionary(values.text(), static_cast<std::size_t>(count)); }))
        return nullptr;
    return PyLong_FromSsize_t(whole ? static_cast<Py_ssize_t>(lists->longest()) : -1);
}

PyObject* start_group(PyObject*, PyObject* capsule) {
    ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    lists->start_group();
    Py_RETURN_NONE;
}

PyObject* dictionary_of(PyObject*, PyObject* capsule) {
    const ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    const Text text = lists->dictionary_text();
    return Py_BuildValue("(Ny#)", bytes_of(lists->dictionary_starts()), text.begin, static_cast<Py_ssize_t>(text.size()));
}

PyObject* text_size(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Buffer codes;
    if (!PyArg_ParseTuple(arguments, "Oy*", &capsule, &codes.view)) return nullptr;
    const ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    std::size_t size = 0;
    if (!lists->add_sizes(numbers_of<std::int32_t>(codes), length_of<std::int32_t>(codes), size))
        return raise_value_error("a code has no word");
    return PyLong_FromSize_t(size);
}

PyObject* add_page(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    std::shared_ptr<Buffer> page(new (std::nothrow) Buffer);
    Py_ssize_t count;
    int coded;
    if (!page) return PyErr_NoMemory();
    if (!PyArg_ParseTuple(arguments, "Oy*np", &capsule, &page->view, &count, &coded)) return nullptr;
    ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    if (count < 0) return raise_value_error("count is not negative");
    bool whole = false;
    if (!without_gil([&] { whole = lists->add_page(page->text(), page, static_cast<std::size_t>(count), coded); }))
        return nullptr;
    return PyLong_FromSsize_t(whole ? static_cast<Py_ssize_t>(lists->begun()) : -1);
}

PyObject* take_rows(PyObject*, PyObject* arguments) {
    PyObject* capsule;
    Py_ssize_t rows;
    if (!PyArg_ParseTuple(arguments, "On", &capsule, &rows)) return nullptr;
    ParquetLists* lists = lists_in(capsule);
    if (!lists) return nullptr;
    if (rows < 0 || static_cast<std::size_t>(rows) > lists->begun()) return raise_value_error("so many rows are not there");
    const bool words = lists->kind() == ParquetLists::WORDS;
    const std::size_t count = lists->entries(static_cast<std::size_t>(rows)) + words;
    PyObject* offsets = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(4 * (static_cast<std::size_t>(rows) + 1)));
    PyObject* values = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count * lists->width()));
    bool whole = false, enough_memory = offsets && values;
    if (enough_memory) {
        auto* places = reinterpret_cast<std::int32_t*>(PyBytes_AsString(offsets));
        char* into = PyBytes_AsString(values);
        enough_memory = without_gil([&] { whole = lists->take(static_cast<std::size_t>(rows), places, into); });
        lists->forget();
    }
    if (enough_memory && whole) {
        const Text text = lists->text();
        return Py_BuildValue("(NNy#)", offsets, values, text.begin, static_cast<Py_ssize_t>(text.size()));
    }
    Py_XDECREF(offsets);
    Py_XDECREF(values);
    if (!enough_memory) return nullptr;
    Py_RETURN_NONE;
}

}  // namespace
