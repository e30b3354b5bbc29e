// What the fuzz targets share: a check that ends the process, and scored blocks.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "../../geval_py/scoring/kernel/block.hpp"

namespace {

// Ends the process unless a condition holds, so that libFuzzer keeps the input.
#define EXPECT(condition)                                                              \
    do {                                                                               \
        if (!(condition)) {                                                            \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                              \
        }                                                                              \
    } while (0)

inline bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

// Whether two losses differ by no more than rounding; infinite ones are equal.
inline bool is_close(double a, double b, double tolerance) {
    return a == b || std::fabs(a - b) <= tolerance * std::max({1.0, std::fabs(a), std::fabs(b)});
}

// A copy in memory of exactly its size: AddressSanitizer sees the first byte read before or after it.
class Exact {
  public:
    explicit Exact(Text text) : bytes_(new char[text.size()]), size_(text.size()) {
        std::copy(text.begin, text.end, bytes_.get());
    }
    Text text() const { return {bytes_.get(), bytes_.get() + size_}; }

  private:
    std::unique_ptr<char[]> bytes_;
    std::size_t size_;
};

inline Text text_of(const std::string& bytes) { return {bytes.data(), bytes.data() + bytes.size()}; }

// What is left of an input.
struct Rest {
    const std::uint8_t* data;
    std::size_t size;

    std::uint8_t byte() { return size ? --size, *data++ : std::uint8_t{0}; }
    Text text() const { return {reinterpret_cast<const char*>(data), reinterpret_cast<const char*>(data) + size}; }
    // The text to the next byte of 1.
    Text field() {
        const auto* mark = std::find(data, data + size, 1);
        const Text result{reinterpret_cast<const char*>(data), reinterpret_cast<const char*>(mark)};
        const std::size_t taken = std::min(size, result.size() + 1);
        data += taken, size -= taken;
        return result;
    }
    template <typename Number>
    std::vector<Number> numbers() const {
        std::vector<Number> numbers(size / sizeof(Number));
        if (!numbers.empty()) std::memcpy(numbers.data(), data, numbers.size() * sizeof(Number));
        return numbers;
    }
};

// The losses and the flags of the lines of a block.
struct Scored {
    std::vector<double> losses;
    std::vector<std::uint32_t> flags;
    BlockResult result;
};

inline Scored score(Text outputs, Text expected, int bits, std::uint64_t first_line, bool thorough) {
    const std::size_t lines = count_lines(expected);
    Scored scored{std::vector<double>(lines), std::vector<std::uint32_t>(lines), {}};
    scored.result = score_block(outputs, expected, lines, bits, first_line, thorough, scored.losses.data(),
                               scored.flags.data());
    EXPECT(scored.result.end.equal);
    return scored;
}

// An input of the target lines and of scripts/fuzz.py: a byte for the number of bits, from 1 to 24, and for the property
// that is checked; two bytes for the first line's number; the output lines; a byte 1; the expected word of all lines.
struct Block {
    static constexpr int MAX_BITS = 24;
    static constexpr char END = '\1';

    int bits = 0;
    unsigned property = 0;
    std::uint64_t first_line = 0;
    Text outputs{nullptr, nullptr};
    std::string word, expected;  // the expected word, and a line of it for each line of the outputs
    std::size_t lines = 0;

    // False if there is no block in an input.
    bool read(const std::uint8_t* data, std::size_t size) {
        if (size < 4) return false;
        const auto* begin = reinterpret_cast<const char*>(data);
        const char *end = begin + size, *mark = end;
        while (mark != begin + 3 && mark[-1] != END) --mark;
        if (mark == begin + 3) return false;
        bits = 1 + data[0] % MAX_BITS;
        property = data[0] / MAX_BITS;
        first_line = data[1] + 256u * data[2];
        outputs = {begin + 3, mark - 1};
        word.clear(), expected.clear();
        std::remove_copy(mark, end, std::back_inserter(word), '\n');
        lines = count_lines(outputs);
        for (std::size_t i = 0; i < lines; ++i) (expected += word) += '\n';
        return true;
    }
};

}  // namespace
