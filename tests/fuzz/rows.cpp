// Fuzz the losses of rows in buffers: rows have the losses of their lines, and offsets that are damaged do no harm.

#include "../../geval_py/scoring/kernel/listed_rows.hpp"
#include "kernel.hpp"

namespace {

constexpr std::size_t MAX_ROWS = 6;

Places places(const Exact& numbers, std::size_t count, bool wide) { return {numbers.text().begin, count, wide}; }

template <typename Number>
Exact exact(const std::vector<Number>& numbers) {
    const auto* begin = reinterpret_cast<const char*>(numbers.data());
    return Exact({begin, begin + numbers.size() * sizeof(Number)});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Rest rest{data, size};
    const int bits = 1 + rest.byte() % 24;
    const unsigned switches = rest.byte();
    const bool probabilities = switches & 1, is_damaged = switches & 2;
    const std::uint32_t first_line = rest.byte() * 0x01000193u;
    std::vector<std::int32_t> offsets{0}, starts{0};
    std::vector<double> values;
    std::vector<std::string> lines;
    std::string text, expected;
    for (std::size_t rows = 1 + rest.byte() % MAX_ROWS; rows; --rows) {
        std::string line;
        for (std::size_t entries = 1 + rest.byte() % 20; entries; --entries) {
            std::string word;
            for (std::size_t length = rest.byte() % 20; length; --length) word += static_cast<char>(rest.byte());
            const double value = rest.byte() / 128.0 - (probabilities ? 0 : 2);
            char number[32];
            std::snprintf(number, sizeof number, ":%.17g", value);
            line += (line.empty() ? "" : " ") + word + number;
            starts.push_back(static_cast<std::int32_t>((text += word).size()));
            values.push_back(value);
        }
        lines.push_back(line + "\n");
        offsets.push_back(static_cast<std::int32_t>(values.size()));
        expected += "ab\n";
    }
    if (is_damaged) {
        for (auto* numbers : {&offsets, &starts})
            for (std::int32_t& number : *numbers)
                if (rest.byte() % 4 == 0) number += rest.byte() - 128;
    }
    const Exact exact_offsets = exact(offsets), exact_starts = exact(starts), exact_values = exact(values),
                exact_text(text_of(text));
    const ListedRows rows{places(exact_offsets, offsets.size(), false), places(exact_starts, starts.size(), false),
                          places(exact_values, values.size(), true), exact_text.text(), probabilities};
    std::vector<double> losses(lines.size());
    std::string answers = expected;
    ListedScorer scorer(rows, bits);
    const std::ptrdiff_t fault = scorer.score(padded(answers), first_line, losses.data());
    if (is_damaged) return 0;
    for (std::size_t i = 0; i < (fault == NONE ? lines.size() : static_cast<std::size_t>(fault)); ++i) {
        const Scored wanted = score(text_of(lines[i]), text_of("ab\n"), bits, first_line + i, false);
        EXPECT(wanted.result.end.malformed == NONE && same_bits(wanted.losses[0], losses[i]));
    }
    return 0;
}
