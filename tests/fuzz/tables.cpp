// Fuzz the tables of words and numbers: the numbers of words, the rows of ARPA files, and the search for keys. The first
// byte of an input chooses.

#include <map>

#include "../../geval_py/scoring/kernel/arpa_rows.hpp"
#include "../../geval_py/scoring/kernel/key_index.hpp"
#include "../../geval_py/scoring/kernel/word_table.hpp"
#include "kernel.hpp"

namespace {

// Words have the numbers that a map gives them, and a table that does not grow knows the same ones.
void check_words(Rest rest) {
    const Exact text(rest.text());
    WordTable table({nullptr, nullptr}, {nullptr, nullptr});
    const NumberedLines found = number_words(table, text.text(), text_of(" \t"), true);
    EXPECT(found.lengths.size() == count_lines(text.text()));
    std::map<std::string, std::int32_t> numbers;
    std::size_t at = 0;
    for (Text left = text.text(); left.begin != left.end;) {
        const Text line = take_line(left);
        std::string word;
        for (const char* p = line.begin;; ++p) {
            if (p != line.end && *p != ' ' && *p != '\t') {
                word += *p;
                continue;
            }
            if (!word.empty()) EXPECT(found.ids.at(at++) == numbers.emplace(word, static_cast<std::int32_t>(numbers.size())).first->second);
            word.clear();
            if (p == line.end) break;
        }
    }
    EXPECT(at == found.ids.size());
    EXPECT(number_words(table, text.text(), text_of(" \t"), false).ids == found.ids);
    const std::string names(table.text().begin(), table.text().end());
    WordTable again(text_of(names), {nullptr, nullptr});
    EXPECT(again.text() == table.text());
}

// Rows of an ARPA file that are read, and written, read back the same.
void check_arpa(Rest rest) {
    const int order = 1 + rest.byte() % 4;
    std::string block(rest.text().begin, rest.text().end), written;
    WordTable table({nullptr, nullptr}, {nullptr, nullptr});
    ArpaRows rows, again;
    const Text text = padded(block);
    const Exact exact(text_of(block));
    if (!read_arpa_rows(table, {exact.text().begin, exact.text().begin + text.size()}, order, true, rows)) return;
    const auto length = static_cast<std::size_t>(order);
    EXPECT(rows.ids.size() == rows.logs.size() * length && rows.logs.size() == rows.backoffs.size());
    std::vector<std::int32_t> columns(rows.ids.size());
    for (std::size_t i = 0; i < rows.ids.size(); ++i)
        columns[i % length * rows.logs.size() + i / length] = rows.ids[i];
    std::string out;
    EXPECT(write_arpa_rows(table, columns.data(), length, rows.logs.size(), rows.logs.data(), rows.backoffs.data(), out));
    for (const double log : rows.logs)
        if (std::isinf(log)) return;  // which no file has
    for (const double backoff : rows.backoffs)
        if (std::isinf(backoff)) return;
    written.assign(out.begin(), out.end());
    EXPECT(read_arpa_rows(table, padded(written), order, false, again));
    EXPECT(again.ids == rows.ids);
    for (std::size_t i = 0; i < rows.logs.size(); ++i) {
        EXPECT(std::fabs(again.logs[i] - rows.logs[i]) <= 1e-7 * std::fabs(rows.logs[i]));
        EXPECT(std::fabs(again.backoffs[i] - rows.backoffs[i]) <= 1e-7 * std::fabs(rows.backoffs[i]));
    }
}

// Each key is found in its row, and no other number anywhere.
void check_keys(Rest rest) {
    std::vector<std::int64_t> keys;
    std::map<std::int64_t, std::int32_t> rows;
    const bool is_dense = rest.byte() % 2;
    std::vector<std::int64_t> wanted = rest.numbers<std::int64_t>();
    for (std::int64_t& number : wanted) {
        if (is_dense) number %= 32;
        if (number >= 0 && keys.size() < wanted.size() / 2 + 1 &&
            rows.emplace(number, static_cast<std::int32_t>(keys.size())).second)
            keys.push_back(number);
    }
    const KeyIndex index(keys.data(), keys.size());
    std::vector<std::int32_t> found(wanted.size());
    index.find(wanted.data(), wanted.size(), found.data());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const auto row = rows.find(wanted[i]);
        EXPECT(found[i] == (row == rows.end() ? -1 : row->second));
    }
}

constexpr void (*TABLES[])(Rest) = {check_words, check_arpa, check_keys};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size) TABLES[data[0] % std::size(TABLES)]({data + 1, size - 1});
    return 0;
}
