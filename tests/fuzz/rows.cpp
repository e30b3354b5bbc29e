// Fuzz the lists of Parquet's pages, and the losses of rows in buffers: pages of some row groups that are encoded in any
// way the format allows, and then perhaps damaged, are decoded, some rows at a time, and what was taken is scored.

#include "../../geval_py/scoring/kernel/listed_rows.hpp"
#include "../../geval_py/scoring/kernel/parquet_lists.hpp"
#include "kernel.hpp"

namespace {

// The entries of a column: whether each begins a row, and its number in the dictionaries of all row groups.
struct Listed {
    bool begins;
    std::uint32_t code;
};

void put_number(std::string& bytes, std::size_t number, std::size_t size) {
    for (; size; --size, number >>= 8) bytes += static_cast<char>(number & 255);
}

void put_sized(std::string& page, const std::string& bytes) {
    put_number(page, bytes.size(), 4);
    page += bytes;
}

// Encodes numbers of some bits as runs: of one number where there are several, or packed ones.
std::string runs_of(const std::vector<std::uint32_t>& numbers, unsigned width, Rest& rest) {
    std::string bytes;
    const auto head = [&bytes](std::size_t number) {
        for (; number > 127; number >>= 7) bytes += static_cast<char>((number & 127) | 128);
        bytes += static_cast<char>(number);
    };
    for (std::size_t i = 0; i < numbers.size();) {
        const std::uint8_t choice = rest.byte();
        std::size_t same = 1;
        while (i + same < numbers.size() && numbers[i + same] == numbers[i] && same <= choice) ++same;
        if (choice % 2) {
            head(same << 1);
            put_number(bytes, numbers[i], (width + 7) / 8);
            i += same;
            continue;
        }
        const std::size_t left = (numbers.size() - i + 7) / 8, whole = (numbers.size() - i) / 8;
        const std::size_t groups = choice % 4 || !whole ? left : 1 + choice / 4 % whole;
        head(groups << 1 | 1);
        std::string packed(groups * width, '\0');
        for (std::size_t n = 0; n < 8 * groups && i < numbers.size(); ++n, ++i)
            for (unsigned bit = 0; bit < width; ++bit)
                if (numbers[i] >> bit & 1) {
                    char& place = packed[(n * width + bit) / 8];
                    place = static_cast<char>(place | 1 << (n * width + bit) % 8);
                }
        bytes += packed;
    }
    return bytes;
}

// The words of the dictionaries, and the numbers; those of a row group begin at `base`.
struct Values {
    std::vector<std::string> words;
    std::vector<double> numbers;
    std::size_t base = 0;

    void add_group(Rest& rest) {
        base = words.size();
        for (std::size_t count = 1 + rest.byte() % 5; count; --count) {
            std::string word;
            for (std::size_t length = rest.byte() % 20; length; --length) word += static_cast<char>(rest.byte());
            words.push_back(word);
            numbers.push_back(rest.byte() / 128.0 - (rest.byte() % 8 ? 0 : 1));
        }
    }
    std::size_t of_group() const { return words.size() - base; }
};

std::string plain(const Values& values, ParquetLists::Kind kind, std::uint32_t code) {
    std::string bytes;
    if (kind == ParquetLists::CODES || kind == ParquetLists::WORDS) {
        put_sized(bytes, values.words[code]);
    } else if (kind == ParquetLists::DOUBLES) {
        bytes.append(reinterpret_cast<const char*>(&values.numbers[code]), 8);
    } else {
        const auto number = static_cast<float>(values.numbers[code]);
        bytes.append(reinterpret_cast<const char*>(&number), 4);
    }
    return bytes;
}

std::string page_of(const std::vector<Listed>& entries, const Values& values, ParquetLists::Kind kind, unsigned definition,
                    bool coded, Rest& rest) {
    std::vector<std::uint32_t> repetitions, codes;
    for (const Listed& entry : entries) {
        repetitions.push_back(!entry.begins);
        codes.push_back(entry.code - static_cast<std::uint32_t>(values.base));
    }
    std::string page;
    put_sized(page, runs_of(repetitions, 1, rest));
    put_sized(page, runs_of(std::vector<std::uint32_t>(entries.size(), definition), definition > 1 ? 2 : 1, rest));
    if (coded) {
        unsigned width = rest.byte() % 8;
        while ((values.of_group() - 1) >> width) ++width;
        page += static_cast<char>(width);
        return page + runs_of(codes, width, rest);
    }
    for (const Listed& entry : entries) page += plain(values, kind, entry.code);
    return page;
}

// What was taken from a column, with the rows that it has.
struct Taken {
    std::vector<std::int32_t> offsets;
    std::string values, text;

    std::int32_t number(std::size_t i) const {
        std::int32_t number;
        std::memcpy(&number, values.data() + 4 * i, sizeof number);
        return number;
    }
};

Taken take(ParquetLists& lists, std::size_t rows, bool& whole) {
    Taken taken;
    const std::size_t count = lists.entries(rows) + (lists.kind() == ParquetLists::WORDS);
    taken.offsets.resize(rows + 1);
    taken.values.resize(count * lists.width());
    whole = lists.take(rows, taken.offsets.data(), &taken.values[0]);
    lists.forget();
    if (whole) taken.text.assign(lists.text().begin, lists.text().end);
    return taken;
}

// Whether what was taken is what the entries from a place on are.
void expect(const Taken& taken, const ParquetLists& lists, const Values& values, const std::vector<Listed>& entries,
            std::size_t from) {
    std::size_t row = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(taken.offsets.back()); ++i) {
        const Listed& entry = entries.at(from + i);
        if (entry.begins) EXPECT(taken.offsets.at(row++) == static_cast<std::int32_t>(i));
        if (lists.kind() == ParquetLists::CODES) {
            EXPECT(taken.number(i) == static_cast<std::int32_t>(entry.code));
        } else if (lists.kind() == ParquetLists::WORDS) {
            const auto start = static_cast<std::size_t>(taken.number(i)), stop = static_cast<std::size_t>(taken.number(i + 1));
            EXPECT(start <= stop && stop <= taken.text.size());
            EXPECT(taken.text.substr(start, stop - start) == values.words[entry.code]);
        } else {
            const std::string wanted = plain(values, lists.kind(), entry.code);
            EXPECT(taken.values.compare(i * lists.width(), lists.width(), wanted) == 0);
        }
    }
    EXPECT(row + 1 == taken.offsets.size());
}

void start_group(ParquetLists& lists, Values& values, Rest& rest) {
    values.add_group(rest);
    std::string dictionary;
    std::size_t longest = 0;
    for (std::size_t code = values.base; code < values.words.size(); ++code) {
        dictionary += plain(values, lists.kind(), static_cast<std::uint32_t>(code));
        longest = std::max(longest, values.words[code].size());
    }
    lists.start_group();
    EXPECT(lists.add_dictionary(Exact(text_of(dictionary)).text(), values.of_group()));
    if (lists.kind() == ParquetLists::CODES || lists.kind() == ParquetLists::WORDS) EXPECT(lists.longest() == longest);
}

// Lists that are missing are counted, nothing else is taken for them, and nothing is taken of them.
void check_nulls(unsigned definition, Rest& rest) {
    std::vector<std::uint32_t> levels(1 + rest.byte() % 70);
    const bool is_other = rest.byte() % 2;
    if (is_other) levels[rest.byte() % levels.size()] = 1 + rest.byte() % definition;
    std::string page;
    put_sized(page, runs_of(std::vector<std::uint32_t>(levels.size()), 1, rest));
    put_sized(page, runs_of(levels, definition > 1 ? 2 : 1, rest));
    ParquetLists lists(ParquetLists::NULLS, definition);
    const auto exact = std::make_shared<Exact>(text_of(page));
    EXPECT(lists.add_page(exact->text(), exact, levels.size(), rest.byte() % 2) == !is_other);
    std::int32_t offsets[72];
    char values[8];
    EXPECT(is_other || (lists.begun() == levels.size() && !lists.take(rest.byte() % (levels.size() + 1), offsets, values)));
}

// Words are hashed together as each alone, and what their bytes have is found.
void check_hashes(const std::vector<std::string>& words, std::uint32_t seed) {
    ShortWords known;
    known.make_room(words.size());
    bool separator = false, high = false;
    std::vector<std::uint32_t> hashes;
    for (std::string word : words) {
        if (word.size() >= SHORT) word.resize(SHORT - 1);
        char bytes[16] = {};
        std::copy(word.begin(), word.end(), bytes);
        known.put(hashes.size(), load8(bytes), load8(bytes + 8), word.size());
        for (const char c : word) separator |= c == ' ' || c == '\n' || c == '\r', high |= c < 0;
        hashes.push_back(murmur3(padded(word), seed));
    }
    for (const HashShort hash : {hash_short_portable, choose_hash_short()}) {
        std::fill(known.hash.begin(), known.hash.end(), 0);
        const ShortBytes found = hash(known, words.size(), seed);
        EXPECT(found.separator == separator && found.high == high);
        EXPECT(std::equal(hashes.begin(), hashes.end(), known.hash.begin()));
    }
}

// Rows have the same losses with the words as codes and as texts.
void check_scores(const Values& values, const std::vector<Listed>& entries, Rest rest) {
    const int bits = 1 + rest.byte() % 12;
    const bool probabilities = rest.byte() % 2;
    std::string dictionary, text, numbers, expected;
    std::vector<std::int32_t> known{0}, starts{0}, offsets, codes;
    for (const std::string& word : values.words) known.push_back(static_cast<std::int32_t>((dictionary += word).size()));
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (entries[i].begins) offsets.push_back(static_cast<std::int32_t>(i)), expected += "ab\n";
        codes.push_back(static_cast<std::int32_t>(entries[i].code));
        starts.push_back(static_cast<std::int32_t>((text += values.words[entries[i].code]).size()));
        numbers.append(reinterpret_cast<const char*>(&values.numbers[entries[i].code]), 8);
    }
    offsets.push_back(static_cast<std::int32_t>(entries.size()));
    const auto places = [](const std::vector<std::int32_t>& of) {
        return Places{reinterpret_cast<const char*>(of.data()), of.size(), false};
    };
    const Exact exact_dictionary(text_of(dictionary)), exact_text(text_of(text)), exact_numbers(text_of(numbers));
    const Places doubles{exact_numbers.text().begin, entries.size(), true};
    std::vector<double> losses[2];
    std::ptrdiff_t faults[2];
    for (const bool coded : {false, true}) {
        const ListedRows rows{places(offsets), places(coded ? known : starts), places(codes), doubles, coded,
                              coded ? exact_dictionary.text() : exact_text.text(), probabilities};
        losses[coded].resize(offsets.size() - 1);
        ListedScorer scorer(rows, bits);
        std::string answers = expected;
        faults[coded] = scorer.score(padded(answers), 1, losses[coded].data());
    }
    EXPECT(faults[0] == faults[1] && same_bits(losses[0], losses[1]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Rest rest{data, size};
    const auto kind = static_cast<ParquetLists::Kind>(rest.byte() % ParquetLists::KINDS);
    const unsigned definition = 1 + rest.byte() % 3, damage = rest.byte(), pages = 1 + rest.byte() % 4;
    if (kind == ParquetLists::NULLS) {
        check_nulls(definition, rest);
        return 0;
    }
    Values values;
    ParquetLists lists(kind, definition);
    std::vector<Listed> entries;
    std::size_t place = 0, rows = 0;
    bool is_whole = damage % 4 != 1;
    for (unsigned number = 0; number < pages; ++number) {
        const bool begins_group = entries.empty() || rest.byte() % 4 == 0;
        if (begins_group) start_group(lists, values, rest);
        std::vector<Listed> of_page;
        const bool follows = begins_group && !entries.empty() && damage % 4 == 2;  // the row of another group
        for (std::size_t count = begins_group + rest.byte() % 70; count; --count) {
            const std::uint8_t byte = rest.byte();
            const bool begins = of_page.empty() && begins_group ? !follows : byte % 4 == 0;
            of_page.push_back({begins, static_cast<std::uint32_t>(values.base + byte / 4 % values.of_group())});
            rows += begins;
        }
        const bool coded = kind == ParquetLists::CODES || rest.byte() % 2;
        std::string page = page_of(of_page, values, kind, definition, coded, rest);
        if (!is_whole && !page.empty()) {
            page[rest.byte() % page.size()] = static_cast<char>(rest.byte());
            page.resize(page.size() - std::min<std::size_t>(page.size(), rest.byte() % 4));
        }
        entries.insert(entries.end(), of_page.begin(), of_page.end());
        const auto exact = std::make_shared<Exact>(text_of(page));
        const bool added = lists.add_page(exact->text(), exact, of_page.size(), coded);
        EXPECT(!(added && follows && is_whole));
        EXPECT(added || !is_whole || follows);
        if (!added) return 0;
        EXPECT(!is_whole || lists.begun() == rows);
        const bool is_last = number + 1 == pages;
        const std::size_t ready = lists.begun() - (lists.begun() && !is_last);
        const std::size_t wanted = is_last ? ready : std::min<std::size_t>(rest.byte(), ready);
        bool whole;
        const Taken taken = take(lists, wanted, whole);
        EXPECT(whole || !is_whole);
        if (!whole) return 0;
        if (is_whole) expect(taken, lists, values, entries, place);
        place += static_cast<std::size_t>(taken.offsets.back());
        rows -= wanted;
    }
    EXPECT(lists.begun() == 0);
    check_hashes(values.words, damage * 0x01000193u);
    if (!entries.empty()) check_scores(values, entries, rest);
    return 0;
}
