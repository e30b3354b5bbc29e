// Fuzz the reading and the writing of numbers: read_number accepts exactly the grammar and gives the number that the C
// library gives, to the last bit, with and without std::from_chars; what is written reads back the same.
//
// This file is compiled twice: with GEVAL_WITHOUT_FROM_CHARS it is only the reader of compilers without std::from_chars.

#include "../../geval_py/scoring/kernel/arpa_rows.hpp"
#include "../../geval_py/scoring/kernel/formatting.hpp"
#include "../../geval_py/scoring/kernel/numbers.hpp"
#include "kernel.hpp"

// The end of the number at the beginning of a padded text, or nullptr; and its value.
const char* read_without_from_chars(const char* p, double& value);

#if defined(GEVAL_WITHOUT_FROM_CHARS)

const char* read_without_from_chars(const char* p, double& value) { return read_number(p, value); }

#else

#include "grammar.hpp"

namespace {

// The end of what the grammar calls a number, at the beginning of a text that ends with a byte 0; nullptr if none begins.
const char* end_of_number(const char* p) {
    const auto skip_digits = [&p] {
        const char* begin = p;
        while (*p >= '0' && *p <= '9') ++p;
        return p != begin;
    };
    if (*p == '+' || *p == '-') ++p;
    if (!skip_digits()) return nullptr;
    if (*p == '.') {
        ++p;
        if (!skip_digits()) return nullptr;
    }
    if (*p == 'e' || *p == 'E') {
        ++p;
        if (*p == '+' || *p == '-') ++p;
        if (!skip_digits()) return nullptr;
    }
    return p;
}

void check_read(const std::uint8_t* data, std::size_t size) {
    static std::string copy;
    copy.assign(reinterpret_cast<const char*>(data), size);
    std::replace(copy.begin(), copy.end(), '\0', '0');  // where the C library would stop
    padded(copy);
    const Exact exact(text_of(copy));
    const char *begin = exact.text().begin, *wanted = end_of_number(begin);
    double value = 0, other = 0;
    EXPECT(read_number(begin, value) == wanted && read_without_from_chars(begin, other) == wanted);
    if (!wanted) return;
    EXPECT(same_bits(value, other));
    copy.resize(static_cast<std::size_t>(wanted - begin));
    EXPECT(same_bits(value, std::strtod(copy.c_str(), nullptr)));
}

void check_written(const std::uint8_t* data, std::size_t size) {
    static std::string written;
    double values[4] = {}, again;
    const std::size_t count = std::min(size / sizeof(double), std::size(values));
    std::memcpy(values, data, count * sizeof(double));
    for (std::size_t i = 0; i < count; ++i) {
        if (!std::isfinite(values[i])) continue;
        EXPECT(format_entries(text_of("\n"), values + i, 1, -INFINITE, INFINITE, written));
        const Text text = padded(written);
        EXPECT(read_number(text.begin + 1, again) == text.end && again == values[i]);
        for (int precision : {6, 8}) {
            char number[40], same[40];
            const std::size_t length = static_cast<std::size_t>(write_short(number, values[i], precision) - number);
            EXPECT(length == static_cast<std::size_t>(std::snprintf(same, sizeof same, "%.*g", precision, values[i])));
            EXPECT(!std::memcmp(number, same, length));
        }
    }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
    Random random(seed);
    static std::string text;
    if (!size || max_size < 16 || random.below(4) == 0) return LLVMFuzzerMutate(data, size, max_size);
    text.assign(reinterpret_cast<const char*>(data), size);
    const std::size_t place = 1 + random.below(text.size());
    switch (random.below(6)) {
        case 0: text.resize(1), append_number(text, random); break;
        case 1: text.insert(place, 1, static_cast<char>('0' + random.below(10))); break;
        case 2: text.insert(place, random.one_of(SOME_SEPARATORS)); break;
        case 3: text.resize(place), append_digits(text, random, 24); break;
        case 4: text.resize(place), text += random.one_of(SOME_EXPONENTS), append_digits(text, random, 3); break;
        default:
            if (place < text.size()) text[place] = static_cast<char>(random.below(4) ? '0' + random.below(10) : random.next());
    }
    text.resize(std::min(text.size(), max_size));
    std::memcpy(data, text.data(), text.size());
    return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (!size) return 0;
    (data[0] % 4 ? check_read : check_written)(data + 1, size - 1);
    return 0;
}

#endif
