// Losses of rows of words and numbers in buffers, as Arrow lays them out: the twin of listed_rows.py.
//
// A part of native.cpp. A row is scored by the code that scores its line, in the same order, so the digits are the same.

// Numbers of four or eight bytes, which may stand at any address.
struct Places {
    const char* begin;
    std::size_t count;
    bool wide;

    std::int64_t operator[](std::size_t i) const {
        if (wide) return load<std::int64_t>(begin + 8 * i);
        return load<std::int32_t>(begin + 4 * i);
    }

    double number(std::size_t i) const {
        return wide ? load<double>(begin + 8 * i) : static_cast<double>(load<float>(begin + 4 * i));
    }

    template <typename Number>
    static Number load(const char* from) {
        Number number;
        std::memcpy(&number, from, sizeof number);
        return number;
    }
};

// Row i has the entries from offsets[i] to before offsets[i + 1]; the text of word j is from starts[j] to before
// starts[j + 1]. Entry k has the word codes[k], or without codes the word k.
struct ListedRows {
    Places offsets, starts, codes, values;
    bool coded;
    Text text;
    bool probabilities;
};

class ListedScorer {
  public:
    ListedScorer(const ListedRows& rows, int bits)
        : rows_(rows), copy_(rows.text.begin, rows.text.end), text_(padded(copy_)), line_(bits, Purpose::losses) {
        if (!rows.coded || !rows.starts.count) return;
        words_.resize(rows.starts.count - 1);
        // In order, which is fast, unless most words would be for nothing. A word that no line can hold stays unknown.
        if (words_.size() <= rows.values.count)
            for (std::size_t code = 0; code < words_.size(); ++code) meet(code);
    }

    // Scores the rows against as many lines of expected words; returns the first row that is no line, or NONE.
    std::ptrdiff_t score(Text expected, std::uint64_t first_line, double* losses) {
        if (rows_.coded && !rows_.codes.wide && rows_.values.wide) {  // the usual form, in a loop of its own
            const char *codes = rows_.codes.begin, *values = rows_.values.begin;
            Word* const words = words_.data();
            const std::size_t count = words_.size();
            return score_rows(expected, first_line, losses, [=](std::size_t place, Entry& entry) {
                entry.value = Places::load<double>(values + 8 * place);
                const auto code = static_cast<std::uint32_t>(Places::load<std::int32_t>(codes + 4 * place));
                return code < count && hash_known(words[code], code, entry);
            });
        }
        return score_rows(expected, first_line, losses, [this](std::size_t place, Entry& entry) {
            entry.value = rows_.values.number(place);
            if (rows_.coded) {
                const auto code = static_cast<std::uint64_t>(rows_.codes[place]);
                return code < words_.size() && hash_known(words_[code], code, entry);
            }
            Text word;
            if (!find(place, word)) return false;
            entry.is_rest = word.begin == word.end;
            entry.hash = murmur3(word, entry.seed);
            return true;
        });
    }

    double bound() const { return line_.bound(); }

  private:
    using Entry = ListedEntry;

    // A word of a dictionary, once it is known, with what MurmurHash3 mixes before the seed comes in (packed_words.hpp).
    struct Word {
        std::uint32_t first = 0, second = 0, last = 0;
        std::uint32_t blocks = UNKNOWN;  // of four bytes: 0, 1 or 2; or one of these
    };
    static constexpr std::uint32_t UNKNOWN = 3, LONG = 4, REST = 5;

    template <typename Take>
    std::ptrdiff_t score_rows(Text expected, std::uint64_t first_line, double* losses, const Take& take) {
        const std::size_t most = rows_.coded ? std::min(rows_.values.count, rows_.codes.count) : rows_.values.count;
        for (std::size_t i = 0; i + 1 < rows_.offsets.count; ++i) {
            const std::int64_t start = rows_.offsets[i], stop = rows_.offsets[i + 1];
            if (start < 0 || start >= stop || static_cast<std::uint64_t>(stop) > most) return static_cast<std::ptrdiff_t>(i);
            const Text wanted = take_line(expected);
            if (!line_.score_entries(take, static_cast<std::size_t>(start), static_cast<std::size_t>(stop), wanted,
                                     expected.end, static_cast<std::uint32_t>(first_line + i), rows_.probabilities,
                                     losses[i]))
                return static_cast<std::ptrdiff_t>(i);
        }
        return NONE;
    }

    // Hashes a word of the dictionary. Most have fewer than three blocks: they are hashed without a branch that depends
    // on their length, which processors could not predict.
    bool hash_known(const Word& word, std::size_t code, Entry& entry) {
        if (word.blocks > 2) {
            if (word.blocks == UNKNOWN && !meet(code)) return false;
            if (word.blocks > 2) {
                Text text;
                if (!find(code, text)) return false;
                entry.is_rest = word.blocks == REST;
                entry.hash = murmur3(text, entry.seed);
                return true;
            }
        }
        std::uint32_t h = entry.seed;
        const std::uint32_t one = mix(h, word.first);
        h = word.blocks > 0 ? one : h;
        const std::uint32_t two = mix(h, word.second);
        h = word.blocks > 1 ? two : h;
        entry.is_rest = false;
        entry.hash = PackedWords::finish(h ^ word.last);
        return true;
    }

    static std::uint32_t mix(std::uint32_t h, std::uint32_t scrambled) { return rotate(h ^ scrambled, 13) * 5 + 0xe6546b64u; }

    // Makes a word of the dictionary known; false if no line can hold it.
    bool meet(std::size_t code) {
        Text text;
        if (!find(code, text)) return false;
        Word& word = words_[code];
        const std::size_t size = text.size(), blocks = size / 4;
        if (!size || blocks > 2) {
            word.blocks = size ? LONG : REST;
            return true;
        }
        const auto block = [&](std::size_t n) { return static_cast<std::uint32_t>(load8(text.begin + 4 * n)); };
        word.first = blocks > 0 ? scramble(block(0)) : 0;
        word.second = blocks > 1 ? scramble(block(1)) : 0;
        const std::uint32_t last = block(blocks) & ((std::uint32_t{1} << 8 * (size % 4)) - 1);
        word.last = scramble(last) ^ static_cast<std::uint32_t>(size);
        word.blocks = static_cast<std::uint32_t>(blocks);
        return true;
    }

    // The text of a word; false if there is none, or if a line cannot hold it.
    bool find(std::size_t number, Text& word) const {
        if (number + 1 >= rows_.starts.count) return false;
        const std::int64_t start = rows_.starts[number], stop = rows_.starts[number + 1];
        if (start < 0 || start > stop || static_cast<std::uint64_t>(stop) > text_.size()) return false;
        word = {text_.begin + start, text_.begin + stop};
        return fits(word);
    }

    // Whether a line can hold a word: it has no space and no line end, and is UTF-8.
    static bool fits(Text word) {
        std::uint64_t found = 0, high = 0;
        for (const char* p = word.begin; p < word.end; p += 8) {
            std::uint64_t bytes = load8(p);
            if (word.end - p < 8) bytes &= (std::uint64_t{1} << 8 * (word.end - p)) - 1;
            found |= matches(bytes, ' ') | matches(bytes, '\n') | matches(bytes, '\r');
            high |= bytes & (ONES * 0x80);
        }
        return !found && (!high || is_utf8(word));
    }

    const ListedRows& rows_;
    std::string copy_;
    Text text_;
    std::vector<Word> words_;
    Line line_;
};
