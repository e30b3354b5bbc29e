// The kernel as a module of Python. Its parts are headers, compiled as one file.
//
// line.hpp reads and scores a line, by means of text.hpp, decoding.hpp, numbers.hpp and mistakes.hpp; block.hpp scores a
// block of lines. Parts named *_calls.hpp take arguments from Python and return objects to it; the others do without.

#include "calls.hpp"
#include "line_calls.hpp"
#include "ngram_calls.hpp"
#include "row_calls.hpp"
#include "token_calls.hpp"

namespace {

PyMethodDef METHODS[] = {  // their signatures are in _native.pyi
    {"read_number", read_number, METH_VARARGS, nullptr},
    {"count_lines", count_lines, METH_VARARGS, nullptr},
    {"line_profiles", line_profiles, METH_VARARGS, nullptr},
    {"bounded_losses", score_lines<false>, METH_VARARGS, nullptr},
    {"score_lines", score_lines<true>, METH_VARARGS, nullptr},
    {"bucket_shares", bucket_shares, METH_VARARGS, nullptr},
    {"take_column", take_column, METH_VARARGS, nullptr},
    {"rewrite_lines", rewrite_lines, METH_VARARGS, nullptr},
    {"format_entries", format_entries, METH_VARARGS, nullptr},
    {"pack_words", pack_words, METH_VARARGS, nullptr},
    {"array_losses", array_losses, METH_VARARGS, nullptr},
    {"word_table", word_table, METH_VARARGS, nullptr},
    {"table_words", table_words, METH_O, nullptr},
    {"number_words", number_words, METH_VARARGS, nullptr},
    {"read_arpa_rows", read_arpa_rows, METH_VARARGS, nullptr},
    {"write_arpa_rows", write_arpa_rows, METH_VARARGS, nullptr},
    {"key_index", key_index, METH_VARARGS, nullptr},
    {"find_keys", find_keys, METH_VARARGS, nullptr},
    {"score_ngrams", score_ngrams, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

int add_types(PyObject* module) {
    PyObject* type = PyType_FromModuleAndSpec(module, &TOKEN_TABLE, nullptr);
    const int status = type ? PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type)) : -1;
    Py_XDECREF(type);
    return status;
}

PyModuleDef_Slot SLOTS[] = {{Py_mod_exec, reinterpret_cast<void*>(add_types)}, {0, nullptr}};

PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "_native", "The native kernel; see geval_py.scoring.kernel.backends.", 0, METHODS, SLOTS, nullptr, nullptr,
    nullptr,
};

}  // namespace

PyMODINIT_FUNC PyInit__native() { return PyModuleDef_Init(&MODULE); }
