// Fuzz the check of UTF-8: with and without AVX2, it accepts what a reader of one character at a time accepts.
// tests/scoring/test_kernel.py compares that reader with Python's decoder.

#include "../../geval_py/scoring/kernel/utf8.hpp"
#include "grammar.hpp"
#include "kernel.hpp"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t, std::size_t max_size, unsigned seed) {
    constexpr const char* PIECES[] = {
        "a", "0123456789", "\x7f", "\x80", "\x8f", "\x90", "\x9f", "\xa0", "\xbf", "\xc0", "\xc1", "\xc2", "\xdf",
        "\xe0", "\xe1", "\xec", "\xed", "\xee", "\xef", "\xf0", "\xf1", "\xf3", "\xf4", "\xf5", "\xff", "\xe0\xa0",
        "\xed\x9f", "\xf0\x90", "\xf0\x90\x80", "\xf4\x8f", "\xf4\x8f\xbf",
    };
    constexpr const char* CHARACTERS[] = {
        "a", "0123456789", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf1\x80\x80\x80", "\xf4\x8f\xbf\xbf",
    };
    Random random(seed);
    static std::string text;
    text.clear();
    const std::size_t size = 1 + random.below(std::min<std::size_t>(max_size, 128)), wrong = random.below(8);
    while (text.size() < size) text += random.below(40) < wrong ? random.one_of(PIECES) : random.one_of(CHARACTERS);
    if (random.below(2)) text.resize(size);
    text.resize(std::min(text.size(), max_size));
    std::memcpy(data, text.data(), text.size());
    return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Exact copy(Rest{data, size}.text());
    const Text text = copy.text();
    bool is_right = true;
    for (const char* p = text.begin; is_right && p != text.end;) {
        const int length = character(p, text.end);
        is_right = length > 0;
        p += length;
    }
    EXPECT(is_utf8(text) == is_right);
    EXPECT(is_utf8_portable(text) == is_right);
    return 0;
}
