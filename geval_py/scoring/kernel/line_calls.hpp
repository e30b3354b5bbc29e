// Lines of outputs, for Python.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "block.hpp"
#include "bucket_shares.hpp"
#include "calls.hpp"
#include "decoding.hpp"
#include "formatting.hpp"
#include "profile.hpp"
#include "rewriting.hpp"
#include "text.hpp"

namespace {

// What calls take: output lines, as many expected lines, the number of bits, the first line's number.
struct BlockArguments {
    Buffer outputs, expected;
    int bits = 0;
    unsigned long long first_line = 0;

    bool parse(PyObject* arguments) {
        return PyArg_ParseTuple(arguments, "y*y*iK", &outputs.view, &expected.view, &bits, &first_line) && check_bits(bits);
    }
    // Whether a block was read to its end; if not, an error is set.
    bool check(const BlockEnd& end) const {
        if (!end.equal) return wrong_lines();
        return end.malformed == NONE || raise_malformed(outputs, bits, first_line, end.malformed);
    }
};

// Gives the losses, their bound and the number of lines far above one or, if thorough, the losses and flags of all
// lines, and which is undecided.
template <bool thorough>
PyObject* score_lines(PyObject*, PyObject* arguments) {
    BlockArguments block;
    if (!block.parse(arguments)) return nullptr;
    std::unique_ptr<double[]> losses;
    std::unique_ptr<std::uint32_t[]> flags;
    std::size_t lines = 0;
    BlockResult result;
    if (!without_gil([&] {
            lines = count_lines(block.expected.text());
            losses.reset(new double[lines]), flags.reset(new std::uint32_t[lines]);
            result = score_block(block.outputs.text(), block.expected.text(), lines, block.bits, block.first_line, thorough,
                                losses.get(), flags.get());
        }))
        return nullptr;
    if (thorough) result.end.malformed = NONE;
    if (!block.check(result.end)) return nullptr;
    if (thorough)
        return Py_BuildValue("(NNn)", array_of(losses.get(), lines), array_of(flags.get(), lines),
                             static_cast<Py_ssize_t>(result.undecided));
    return Py_BuildValue("(Ndn)", array_of(losses.get(), lines), result.bound, static_cast<Py_ssize_t>(result.far_above_one));
}

PyObject* line_profiles(PyObject*, PyObject* arguments) {
    BlockArguments block;
    if (!block.parse(arguments)) return nullptr;
    ProfiledBlock profile;
    if (!without_gil([&] {
            profile = profile_block(block.outputs.text(), block.expected.text(), count_lines(block.expected.text()),
                                    block.bits, block.first_line);
        }))
        return nullptr;
    return block.check(profile.end) ? columns_of(profile.columns, PROFILE_COLUMNS) : nullptr;
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
            equal = sum_shares(words.text(), numbers_of<double>(shares), length_of<double>(shares), expected.text(), bits,
                               first_line, sums);
        }))
        return nullptr;
    return equal ? array_of(sums) : raise_value_error("words and shares differ in number");
}

PyObject* rewrite_lines(PyObject*, PyObject* arguments) {
    PyObject* blocks;
    Buffer words, shares, weights, edges;
    int bits;
    unsigned long long first_line;
    if (!PyArg_ParseTuple(arguments, "O!Ky*y*y*y*i", &PyTuple_Type, &blocks, &first_line, &words.view, &shares.view,
                          &weights.view, &edges.view, &bits) ||
        !check_bits(bits))
        return nullptr;
    const auto count = static_cast<std::size_t>(PyTuple_Size(blocks)), edge_count = length_of<double>(edges);
    std::vector<Buffer> buffers(count);
    std::vector<Text> outputs;
    for (std::size_t i = 0; i < count; ++i) {
        PyObject* block = PyTuple_GetItem(blocks, static_cast<Py_ssize_t>(i));
        if (PyObject_GetBuffer(block, &buffers[i].view, PyBUF_SIMPLE) < 0) return nullptr;
        outputs.push_back(buffers[i].text());
    }
    if (count_lines(words.text()) + 1 != length_of<double>(shares) ||
        length_of<double>(weights) != (edge_count + 1) * (2 * count + 2))
        return raise_value_error("the numbers do not fit together");
    std::vector<char> lines;
    std::vector<std::int64_t> ends(count);
    Py_ssize_t written = 0;
    if (!writing([&] {
            std::string copy(words.text().begin, words.text().end);
            const Recipe recipe{numbers_of<double>(weights), numbers_of<double>(edges), numbers_of<double>(shares), edge_count,
                                padded(copy)};
            Rewriter rewriter(recipe, count, bits, lines);
            const auto has_lines = [](Text text) { return text.begin != text.end; };
            while (std::all_of(outputs.begin(), outputs.end(), has_lines) &&
                   rewriter.rewrite(outputs, first_line + static_cast<std::uint64_t>(written))) {
                ++written;
                for (std::size_t i = 0; i < count; ++i) ends[i] = outputs[i].begin - buffers[i].text().begin;
            }
        }))
        return nullptr;
    return Py_BuildValue("(NnN)", bytes_of(lines), written, array_of(ends));
}

PyObject* format_entries(PyObject*, PyObject* arguments) {
    Buffer words, numbers;
    double least, most;
    if (!PyArg_ParseTuple(arguments, "y*y*dd", &words.view, &numbers.view, &least, &most)) return nullptr;
    std::string line;
    bool fits = true;
    if (!writing([&] {
            fits = format_entries(words.text(), numbers_of<double>(numbers), length_of<double>(numbers), least, most, line);
        }))
        return nullptr;
    if (!fits) return raise_value_error("words and numbers differ in number, or a number is out of range");
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
