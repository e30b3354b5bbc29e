// Fuzz the scoring of arrays: rows of one number for each word, and rows with ids. Numbers of any value and ids of no
// word may come; a row is at fault or has a loss. Dense rows give what sparse ones give, floats what doubles of the same
// value give, and the loops for AVX2 what the portable ones give, to the last bit.
//
// An input is a byte for the number of bits, a byte of switches, a byte for the number of rows, a number of words as
// lines, each of a byte for its length and its bytes, a byte 0, and then the numbers: a byte that chooses a known
// number, or 0 and the eight bytes of a double.

#include "../../geval_py/scoring/kernel/packed_words.hpp"
#include "kernel.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

constexpr std::size_t MAX_WORDS = 80, MAX_ROWS = 2;
const double KNOWN_NUMBERS[] = {
    0.0,   1.0,    0.5,   0.25,  1e-3, 0.1,    1e-9,      1 - 1e-9,  1 - 1e-8,       -0.0,     -1.0,     -2.5,
    -7.25, -100.0, -745., -1e30, 2.0,  5e-324, -5e-324,   1e308,     -1e308,         1e-320,   INFINITE, -INFINITE,
    700.0, 1e-40,  0.3,   0.7,   -0.5, -20.0,  1.0000001, 0.9999999, std::nan(""),   -708.0,   3e38,     4e38,
};

// Reads an input from its beginning; bytes that are missing are 0.
class Bytes {
  public:
    Bytes(const std::uint8_t* data, std::size_t size) : p_(data), end_(data + size) {}
    std::uint8_t byte() { return p_ == end_ ? 0 : *p_++; }
    double number() {
        const std::uint8_t kind = byte();
        if (kind) return KNOWN_NUMBERS[kind % std::size(KNOWN_NUMBERS)];
        double value = 0;
        const auto left = std::min<std::size_t>(sizeof value, static_cast<std::size_t>(end_ - p_));
        std::memcpy(&value, p_, left);
        p_ += left;
        return value;
    }
    std::string word() {
        std::string word;
        for (std::size_t left = byte() % 20; left; --left) {
            const char c = static_cast<char>(byte());
            if (c != '\n') word += c;
        }
        return word;
    }

  private:
    const std::uint8_t *p_, *end_;
};

// An array, the answers, and what scoring it gave.
template <typename Number>
struct Array {
    std::vector<Number> values;
    std::vector<std::int64_t> ids;
    std::vector<double> rests, losses;
    std::ptrdiff_t fault = NONE;
    double bound = 0;

    void score(const PackedWords& words, int bits, Unit unit, Text answers, const std::vector<std::uint32_t>& lines) {
        RowScorer<Number> scorer(words, bits, unit);
        losses.assign(lines.size(), -1);
        const Rows<Number> rows{lines.size(),
                                words.size(),
                                reinterpret_cast<const char*>(values.data()),
                                static_cast<std::ptrdiff_t>(words.size() * sizeof(Number)),
                                ids.empty() ? nullptr : ids.data(),
                                rests.empty() ? nullptr : rests.data()};
        fault = scorer.score(rows, answers, lines.data(), losses.data());
        bound = scorer.bound();
        if (fault != NONE) losses.resize(static_cast<std::size_t>(fault));
        for (const double loss : losses) EXPECT(loss >= 0 && loss <= bound * (1 + 1e-12) + 1e-12);
    }
};

template <typename Number>
void expect_same_summaries(const Summary& one, const Summary& other) {
    EXPECT(one.valid == other.valid);
    if (one.valid) EXPECT(same_bits(one.greatest, other.greatest) && same_bits(one.total, other.total));
}

// The loops for AVX2 find and add up as the portable ones do.
template <typename Number>
void check_loops(const PackedWords& words, Wanted wanted, const std::vector<Number>& values) {
#if defined(GEVAL_DISPATCHES)
    static const bool has_avx2 = __builtin_cpu_supports("avx2");
    if (!has_avx2) return;
    const Loops<Number> fast = loops_avx2<Number>(), portable = loops_portable<Number>();
    std::vector<std::uint32_t> found, same;
    fast.find_words(words, wanted, found);
    portable.find_words(words, wanted, same);
    EXPECT(found == same);
    for (const std::uint32_t id : found) EXPECT(wanted.is(words.hash(id, wanted.seed)));
    expect_same_summaries<Number>(fast.sum(values.data(), values.size()), portable.sum(values.data(), values.size()));
    const Summary greatest = fast.greatest(values.data(), values.size());
    expect_same_summaries<Number>(greatest, portable.greatest(values.data(), values.size()));
    if (greatest.valid && greatest.greatest != -INFINITE)
        EXPECT(same_bits(fast.sum_exp(values.data(), values.size(), greatest.greatest),
                         portable.sum_exp(values.data(), values.size(), greatest.greatest)));
#endif
}

template <typename Number>
void expect_same(const Array<Number>& one, const Array<Number>& other) {
    EXPECT(one.fault == other.fault && same_bits(one.losses, other.losses) && same_bits(one.bound, other.bound));
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
    // Often a known number or one more word: the default mutations make few of them.
    const std::uint32_t random = static_cast<std::uint32_t>(seed * 0x9e3779b97f4a7c15u >> 32);
    if (random % 4 || size < 4 || size + 2 > max_size) return LLVMFuzzerMutate(data, size, max_size);
    const std::size_t place = 3 + (random >> 4) % (size - 3);
    std::memmove(data + place + 2, data + place, size - place);
    data[place] = random & 4 ? 1 : static_cast<std::uint8_t>(random >> 24);
    data[place + 1] = random & 8 ? static_cast<std::uint8_t>('a' + (random >> 16) % 4) : static_cast<std::uint8_t>(random >> 16);
    return size + 2;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes(data, size);
    const int bits = 1 + bytes.byte() % 24;
    const unsigned switches = bytes.byte();
    const bool has_rests = switches & 1, is_single = switches & 2, is_wild = switches & 4;
    const auto unit = static_cast<Unit>((switches >> 3) % 3);
    const std::size_t rows = 1 + bytes.byte() % MAX_ROWS;
    std::string vocabulary, answers, word;
    std::size_t words = 0;
    for (; words < MAX_WORDS && (!(word = bytes.word()).empty() || words == 0); ++words) (vocabulary += word) += '\n';
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t place = bytes.byte() % words;
        Text left = text_of(vocabulary);
        for (std::size_t i = 0; i < place; ++i) take_line(left);
        const Text answer = take_line(left);
        answers.append(answer.begin, answer.end) += '\n';
    }
    std::vector<std::uint32_t> lines;
    for (std::size_t row = 0; row < rows; ++row) lines.push_back(row ? bytes.byte() * 0x01000193u : switches);
    Array<double> dense;
    for (std::size_t row = 0; has_rests && row < rows; ++row) dense.rests.push_back(bytes.number());
    for (std::size_t i = 0; i < rows * words; ++i) dense.values.push_back(bytes.number());
    if (is_single)
        for (double& value : dense.values)
            value = std::fabs(value) <= std::numeric_limits<float>::max() ? static_cast<double>(static_cast<float>(value)) : 0.5;
    const PackedWords packed(text_of(vocabulary));
    EXPECT(packed.size() == words);
    const Text texts = padded(answers);
    Text left = texts;
    const Text first = take_line(left);
    const Wanted wanted{lines[0], (std::uint32_t{1} << bits) - 1, murmur3(first, lines[0])};
    check_loops(packed, wanted, dense.values);
    dense.score(packed, bits, unit, texts, lines);

    Array<double> sparse = dense;
    for (std::size_t i = 0; i < rows * words; ++i) sparse.ids.push_back(static_cast<std::int64_t>(i % words));
    sparse.score(packed, bits, unit, texts, lines);
    expect_same(sparse, dense);

    if (is_single) {
        Array<float> single;
        for (const double value : dense.values) single.values.push_back(static_cast<float>(value));
        single.rests = dense.rests;
        single.score(packed, bits, unit, texts, lines);
        EXPECT(single.fault == dense.fault && same_bits(single.losses, dense.losses));
        check_loops(packed, wanted, single.values);
    }
    if (is_wild) {  // ids of no word are at fault
        for (std::int64_t& id : sparse.ids)
            if (const std::uint8_t change = bytes.byte()) 
                id = change > 200 ? -change : static_cast<std::int64_t>(change > 150 ? words : change % words);
        sparse.score(packed, bits, unit, texts, lines);
    }
    return 0;
}
