// N-gram models: the scores of a text by a binary file of KenLM, the numbers of words, the rows of ARPA files, and the
// search for n-grams. First the scores of a text by a binary file of KenLM that holds probing hash tables: the twin of
// ProbingModel in geval_py/modelling/kenlm_models.py, which describes the file. The file is not trusted: what it says
// of its sizes is checked once, an id before it is used, and a search ends after all buckets.

constexpr std::uint64_t MOST_NGRAMS = std::uint64_t{1} << 40;
constexpr std::size_t MOST_PROBING_ORDER = 32;

// MurmurHash2, 64 bits, by Austin Appleby, in the public domain.
std::uint64_t murmur2(Text word) {
    constexpr std::uint64_t MULTIPLIER = 0xc6a4a7935bd1e995u;
    std::uint64_t h = word.size() * MULTIPLIER;
    const char* p = word.begin;
    for (; word.end - p >= 8; p += 8) {
        std::uint64_t k = load8(p) * MULTIPLIER;
        k ^= k >> 47;
        h = (h ^ k * MULTIPLIER) * MULTIPLIER;
    }
    if (p < word.end) {
        char rest[8] = {};
        std::memcpy(rest, p, static_cast<std::size_t>(word.end - p));
        h = (h ^ load8(rest)) * MULTIPLIER;
    }
    h = (h ^ h >> 47) * MULTIPLIER;
    return h ^ h >> 47;
}

inline std::uint32_t load4(const char* p) {
    char bytes[8] = {};
    std::memcpy(bytes, p, 4);
    return static_cast<std::uint32_t>(load8(bytes));
}

inline float load_float(const char* p) {
    const std::uint32_t bits = load4(p);
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

inline void prefetch(const char* p) {
#if defined(__GNUC__)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

// A hash table in the file: each entry begins with its key of eight bytes, 0 for none; the next bucket follows the last.
struct ProbingTable {
    const char* begin = nullptr;
    std::uint64_t buckets = 1;
    std::size_t width = 0;

    const char* bucket_of(std::uint64_t key) const { return begin + key % buckets * width; }
    // The rest of the entry with a key, searched from its bucket on; nullptr if there is none.
    const char* find(std::uint64_t key, const char* entry) const {
        for (std::uint64_t tried = 0; tried < buckets; ++tried) {
            const std::uint64_t found = load8(entry);
            if (found == key) return key ? entry + 8 : nullptr;
            if (!found) return nullptr;
            entry += width;
            if (entry == begin + buckets * width) entry = begin;
        }
        return nullptr;
    }
};

struct ProbingLogs {
    std::vector<float> logs;             // log10 of the probability of each token
    std::vector<unsigned char> unknown;  // whether it is out of vocabulary
    std::vector<std::int64_t> lengths;   // tokens of each line
};

class ProbingModel {
  public:
    // Finds the tables; false if the sizes are wrong.
    bool open(Text file, float multiplier, const std::vector<std::uint64_t>& counts) {
        const std::size_t order = counts.size();
        if (order < 2 || order > MOST_PROBING_ORDER || !(multiplier >= 1 && multiplier <= 1e6f)) return false;
        for (const std::uint64_t count : counts)
            if (count > MOST_NGRAMS) return false;
        const std::uint64_t size = file.size();
        std::uint64_t at = 112 + 8 * std::uint64_t{order} + 8;
        const auto place = [&](ProbingTable& table, std::uint64_t entries, std::size_t width) {
            const auto wanted = static_cast<std::uint64_t>(multiplier * static_cast<float>(entries));
            table.buckets = std::max(entries + 1, wanted);
            table.width = width;
            if (at > size || table.buckets > (size - at) / width) return false;
            table.begin = file.begin + at;
            at += table.buckets * width;
            return true;
        };
        if (!place(words_, counts[0], 12)) return false;
        unigrams_ = file.begin + at;
        number_ = counts[0] + 1;
        if (at > size || number_ > (size - at) / 8) return false;
        at += number_ * 8;
        tables_.resize(order - 1);
        for (std::size_t i = 0; i < tables_.size(); ++i)
            if (!place(tables_[i], counts[i + 1], i + 1 < tables_.size() ? 16 : 12)) return false;
        return true;
    }

    void score(Text text, bool marks, ProbingLogs& out) {
        const std::uint32_t start = id_of("<s>", 3), end = id_of("</s>", 4);
        while (text.begin < text.end) {
            Text line = take_line(text);
            hashes_.clear();
            for (const char* p = line.begin; p < line.end;) {
                while (p < line.end && is_space(*p)) ++p;
                const char* begin = p;
                while (p < line.end && !is_space(*p)) ++p;
                if (begin == p) continue;
                hashes_.push_back(murmur2({begin, p}));
                prefetch(words_.bucket_of(hashes_.back()));
            }
            ids_.clear();
            if (marks) ids_.push_back(start);
            for (const std::uint64_t hash : hashes_) {
                ids_.push_back(id_of(hash));
                prefetch(unigrams_ + 8 * static_cast<std::size_t>(ids_.back()));
            }
            if (marks) ids_.push_back(end);
            score_ids(marks, out);
        }
    }

  private:
    static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
    std::uint32_t id_of(const char* word, std::size_t size) const { return id_of(murmur2({word, word + size})); }
    std::uint32_t id_of(std::uint64_t hash) const {
        const char* found = words_.find(hash, words_.bucket_of(hash));
        const std::uint32_t id = found ? load4(found) : 0;
        return id < number_ ? id : 0;
    }

    // Hashes the n-grams that may end at a token, so that their buckets are in the cache when the token is scored.
    void fetch(std::size_t at) {
        const std::size_t longest = std::min(at, tables_.size());
        std::uint64_t key = ids_[at];
        for (std::size_t i = 0; i < longest; ++i) {
            key = (key * 8978948897894561157u) ^ ((1 + std::uint64_t{ids_[at - 1 - i]}) * 17894857484156487943u);
            const char* bucket = tables_[i].bucket_of(key);
            wanted_[at * tables_.size() + i] = {key, bucket};
            prefetch(bucket);
        }
    }

    void score_ids(bool marks, ProbingLogs& out) {
        constexpr std::size_t AHEAD = 3;
        wanted_.resize(ids_.size() * tables_.size());
        float backoffs[MOST_PROBING_ORDER], next[MOST_PROBING_ORDER];
        std::size_t context = 0;  // words of the context that the model may have more words for
        if (marks) {
            backoffs[0] = load_float(unigrams_ + 8 * static_cast<std::size_t>(ids_[0]) + 4);
            context = 1;
        }
        const std::size_t first = marks ? 1 : 0;
        for (std::size_t at = first; at < std::min(first + AHEAD, ids_.size()); ++at) fetch(at);
        for (std::size_t at = first; at < ids_.size(); ++at) {
            if (at + AHEAD < ids_.size()) fetch(at + AHEAD);
            const char* entry = unigrams_ + 8 * static_cast<std::size_t>(ids_[at]);
            float log = load_float(entry);
            bool extends = !std::signbit(log);  // to the left
            next[0] = load_float(entry + 4);
            std::size_t length = 1, kept = goes_on(next[0]) ? 1 : 0;
            for (std::size_t i = 0; i < context && extends; ++i) {
                const Wanted& wanted = wanted_[at * tables_.size() + i];
                entry = tables_[i].find(wanted.key, wanted.bucket);
                if (!entry) break;
                log = load_float(entry);
                length = i + 2;
                if (i + 1 == tables_.size()) break;
                extends = !std::signbit(log);
                next[i + 1] = load_float(entry + 4);
                if (goes_on(next[i + 1])) kept = length;
            }
            log = -std::fabs(log);
            for (std::size_t i = length - 1; i < context; ++i) log += backoffs[i];
            out.logs.push_back(log);
            out.unknown.push_back(ids_[at] == 0);
            context = kept;
            std::copy(next, next + kept, backoffs);
        }
        out.lengths.push_back(static_cast<std::int64_t>(ids_.size() - first));
    }

    // A back-off of minus zero marks an n-gram that is no context.
    static bool goes_on(float backoff) { return backoff != 0 || !std::signbit(backoff); }

    struct Wanted {
        std::uint64_t key;
        const char* bucket;
    };
    ProbingTable words_;
    const char* unigrams_ = nullptr;
    std::uint64_t number_ = 0;
    std::vector<ProbingTable> tables_;  // from bigrams on
    std::vector<std::uint64_t> hashes_;
    std::vector<std::uint32_t> ids_;
    std::vector<Wanted> wanted_;
};

// ---- numbers of words --------------------------------------------------------------------------------------------

// Numbers words from 0 on in their order of appearance.
class WordTable {
  public:
    // The words, each with an LF behind it; alias is another name of the first word.
    WordTable(Text words, Text alias) {
        while (words.begin != words.end) number(take_line(words), true);
        if (alias.size()) {
            slot_of(alias) = {tag_of(hash(alias)), 1};
            alias_.assign(alias.begin, alias.end);
        }
    }
    // The number of a word; -1 if it is new and the table does not grow.
    std::int32_t number(Text word, bool grow) {
        const std::uint64_t h = hash(word);
        for (std::size_t at = h & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
            Slot& slot = slots_[at];
            if (!slot.next) {
                if (!grow) return -1;
                slot = {tag_of(h), static_cast<std::uint32_t>(starts_.size())};
                text_.insert(text_.end(), word.begin, word.end);
                text_.push_back('\n');
                starts_.push_back(text_.size());
                if (starts_.size() > slots_.size() / 2) double_slots();
                return static_cast<std::int32_t>(starts_.size()) - 2;
            }
            if (slot.tag == tag_of(h) && is(slot.next - 1, word)) return static_cast<std::int32_t>(slot.next - 1);
        }
    }
    const std::vector<char>& text() const { return text_; }
    std::mutex mutex;

  private:
    struct Slot {
        std::uint32_t tag, next;  // the number of the word and 1; 0 if the slot is empty
    };
    static std::uint64_t hash(Text word) { return murmur2(word); }
    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
    bool is(std::size_t number, Text word) const {
        const std::size_t size = starts_[number + 1] - starts_[number] - 1;
        return (size == word.size() && !std::memcmp(text_.data() + starts_[number], word.begin, size)) ||
               (!number && word.size() == alias_.size() && !std::memcmp(alias_.data(), word.begin, word.size()));
    }
    Slot& slot_of(Text word) {
        std::size_t at = hash(word) & (slots_.size() - 1);
        while (slots_[at].next) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }
    void double_slots() {
        slots_.assign(2 * slots_.size(), {0, 0});
        for (std::size_t i = 0; i + 1 < starts_.size(); ++i) {
            const char* begin = text_.data() + starts_[i];
            const Text word{begin, text_.data() + starts_[i + 1] - 1};
            slot_of(word) = {tag_of(hash(word)), static_cast<std::uint32_t>(i + 1)};
        }
        if (const Text alias{alias_.data(), alias_.data() + alias_.size()}; alias.size())
            slot_of(alias) = {tag_of(hash(alias)), 1};
    }

    std::vector<char> text_;  // the words, each with an LF behind it
    std::vector<std::size_t> starts_{0};
    std::string alias_;
    std::vector<Slot> slots_ = std::vector<Slot>(1 << 12, Slot{0, 0});
};

struct NumberedLines {
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> lengths;  // words by line
};

NumberedLines number_words(WordTable& table, Text text, Text spaces, bool grow) {
    bool is_space[256] = {};
    for (const char* p = spaces.begin; p < spaces.end; ++p) is_space[static_cast<unsigned char>(*p)] = true;
    NumberedLines found;
    while (text.begin != text.end) {
        const Text line = take_line(text);
        const std::size_t before = found.ids.size();
        for (const char* p = line.begin; p < line.end;) {
            while (p < line.end && is_space[static_cast<unsigned char>(*p)]) ++p;
            const char* begin = p;
            while (p < line.end && !is_space[static_cast<unsigned char>(*p)]) ++p;
            if (begin < p) found.ids.push_back(table.number({begin, p}, grow));
        }
        found.lengths.push_back(static_cast<std::int64_t>(found.ids.size() - before));
    }
    return found;
}

// ---- the rows of ARPA files --------------------------------------------------------------------------------------

struct ArpaRows {
    std::vector<std::int32_t> ids;  // of the words of all n-grams
    std::vector<double> logs, backoffs;
};

// Reads a log10 that a byte follows, or the end of the line.
inline const char* read_log(const char* p, double& value, bool& read) {
    const char* end = read_number(p, value);
    read = read && end;
    return end ? end : p;
}

// Reads the rows of a padded block; false if one is malformed, or has a word that the table lacks and may not add.
bool read_arpa_rows(WordTable& table, Text block, int order, bool grow, ArpaRows& out) {
    while (block.begin != block.end) {
        const Text line = take_line(block);
        double log, backoff = 0;
        bool read = true;
        const char* p = read_log(line.begin, log, read);
        if (!read || !(log <= 0) || p >= line.end || *p++ != '\t') return false;
        for (int i = 0; i < order; ++i) {
            const char* begin = p;
            while (p < line.end && *p != ' ' && *p != '\t') ++p;
            const std::int32_t id = begin < p ? table.number({begin, p}, grow) : -1;
            if (id < 0 || (i + 1 < order && (p == line.end || *p++ != ' '))) return false;
            out.ids.push_back(id);
        }
        if (p < line.end) {
            if (*p != '\t') return false;
            p = read_log(p + 1, backoff, read);
            if (!read || p != line.end || !(backoff < INFINITE)) return false;
        }
        out.logs.push_back(log);
        out.backoffs.push_back(backoff);
    }
    return true;
}

// Writes a number as "%.8g" does; at most 24 bytes.
char* write_log(char* out, double value) {
    constexpr int DIGITS = 8;
    constexpr double MOST = 1e8;
    if (std::isnan(value)) return std::copy_n("nan", 3, out);
    if (std::signbit(value)) *out++ = '-';
    double size = std::fabs(value);
    if (size == INFINITE) return std::copy_n("inf", 3, out);
    if (size == 0) {
        *out++ = '0';
        return out;
    }
    // The digits as a whole number, after one multiplication by a power of ten that a double holds exactly. Its error
    // is below 1e-8, so that the whole number is right unless its fraction is that close to a half.
    std::uint64_t digits = 0;
    int exponent = 0;
    bool sure = false;
    if (size >= 1e-14 && size < 1e7) {
        exponent = static_cast<int>(std::floor(std::ilogb(size) * 0.30102999566398120));
        if (size * EXACT_POWERS_OF_TEN[DIGITS - 1 - exponent] >= MOST) ++exponent;
        const double scaled = size * EXACT_POWERS_OF_TEN[DIGITS - 1 - exponent];
        digits = static_cast<std::uint64_t>(scaled);
        const double rest = scaled - static_cast<double>(digits);
        sure = std::fabs(rest - 0.5) > 1e-6;
        digits += rest > 0.5;
    }
    if (!sure) {
        char text[40];
        std::snprintf(text, sizeof text, "%.7e", size);
        const char* p = text;
        digits = 0;
        for (; *p != 'e'; ++p)
            if (is_digit(*p)) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');  // the point may be a comma
        exponent = std::atoi(p + 1);
    }
    if (digits == 100000000) {
        digits = 10000000;
        ++exponent;
    }
    char text[DIGITS];
    for (int i = DIGITS; i--; digits /= 10) text[i] = static_cast<char>('0' + digits % 10);
    int left = DIGITS;
    while (text[left - 1] == '0') --left;
    if (exponent < -4 || exponent >= DIGITS) {
        *out++ = text[0];
        if (left > 1) *out++ = '.';
        out = std::copy(text + 1, text + left, out);
        return out + std::snprintf(out, 6, "e%+03d", exponent);
    }
    if (exponent < 0) {
        out = std::copy_n("0.000", 1 - exponent, out);
        return std::copy(text, text + left, out);
    }
    out = std::copy(text, text + exponent + 1, out);
    if (left <= exponent + 1) return out;
    *out++ = '.';
    return std::copy(text + exponent + 1, text + left, out);
}

// The words of a model, each with an LF behind it, and where they start.
struct Words {
    const char* text;
    const std::int64_t* starts;
    std::size_t number;
};

// Writes rows, given as columns of words; without back-offs if they are nullptr. False for a word that does not exist.
bool write_arpa_rows(Words words, const std::int32_t* columns, std::size_t order, std::size_t rows, const double* logs,
                     const double* backoffs, std::vector<char>& out) {
    constexpr std::size_t NUMBERS = 64;
    std::size_t filled = 0;
    out.resize(rows * 64);
    for (std::size_t row = 0; row < rows; ++row) {
        if (out.size() - filled < NUMBERS) out.resize(2 * out.size() + NUMBERS);
        filled = static_cast<std::size_t>(write_log(out.data() + filled, logs[row]) - out.data());
        for (std::size_t i = 0; i < order; ++i) {
            const auto id = static_cast<std::size_t>(columns[i * rows + row]);
            if (id >= words.number) return false;
            const auto size = static_cast<std::size_t>(words.starts[id + 1] - words.starts[id] - 1);
            if (out.size() - filled < size + NUMBERS) out.resize(2 * out.size() + size + NUMBERS);
            out[filled++] = i ? ' ' : '\t';
            std::memcpy(out.data() + filled, words.text + words.starts[id], size);
            filled += size;
        }
        if (backoffs) {
            out[filled++] = '\t';
            filled = static_cast<std::size_t>(write_log(out.data() + filled, backoffs[row]) - out.data());
        }
        out[filled++] = '\n';
    }
    out.resize(filled);
    return true;
}

// ---- the search for n-grams --------------------------------------------------------------------------------------

// Finds the rows of different numbers that are not negative; they stay where they are.
class KeyIndex {
  public:
    KeyIndex(const std::int64_t* keys, std::size_t number) : keys_(keys) {
        while (slots() < 2 * number) ++bits_;
        rows_.resize(slots());
        for (std::size_t row = 0; row < number; ++row) {
            if (row + AHEAD < number) prefetch(reinterpret_cast<const char*>(&rows_[slot_of(keys[row + AHEAD])]));
            std::size_t at = slot_of(keys[row]);
            while (rows_[at]) at = (at + 1) & (slots() - 1);
            rows_[at] = static_cast<std::uint32_t>(row + 1);
        }
    }
    // Writes the row of each number, -1 if there is none.
    void find(const std::int64_t* wanted, std::size_t number, std::int32_t* rows) const {
        for (std::size_t i = 0; i < number; ++i) {
            if (i + 2 * AHEAD < number) prefetch(reinterpret_cast<const char*>(&rows_[slot_of(wanted[i + 2 * AHEAD])]));
            if (i + AHEAD < number)
                if (const std::uint32_t row = rows_[slot_of(wanted[i + AHEAD])])
                    prefetch(reinterpret_cast<const char*>(&keys_[row - 1]));
            rows[i] = wanted[i] < 0 ? -1 : row_of(wanted[i]);
        }
    }

  private:
    static constexpr std::size_t AHEAD = 8;
    std::size_t slots() const { return std::size_t{1} << bits_; }
    std::size_t slot_of(std::int64_t key) const {
        return static_cast<std::size_t>(static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15u >> (64 - bits_));
    }
    std::int32_t row_of(std::int64_t key) const {
        for (std::size_t at = slot_of(key); rows_[at]; at = (at + 1) & (slots() - 1))
            if (keys_[rows_[at] - 1] == key) return static_cast<std::int32_t>(rows_[at] - 1);
        return -1;
    }

    const std::int64_t* keys_;
    int bits_ = 4;
    std::vector<std::uint32_t> rows_;  // and 1; 0 if a slot is empty
};
