// The fast twin of TokenTable in reference.py: distinct tokens, numbered from 0 in the order in which they appear.
//
// A part of native.cpp. The texts of all tokens stand one after the other in a single string.

class TokenTable {
  public:
    // The number of distinct tokens of each line, and their numbers, line by line. Tokens stand between separators;
    // without any, each line is one token.
    void number(Text text, Text separators, std::vector<std::int64_t>& counts, std::vector<std::int64_t>& numbers) {
        const std::lock_guard<std::mutex> lock(mutex_);
        bool separates[256] = {};
        for (const char* p = separators.begin; p != separators.end; ++p) separates[static_cast<unsigned char>(*p)] = true;
        const bool whole = separators.begin == separators.end;
        while (text.begin != text.end) {
            const std::size_t before = numbers.size();
            const Text line = take_line(text);
            ++line_;
            found_.clear();
            if (whole) {
                find(line);
            } else {
                for (const char* p = line.begin; p != line.end;) {
                    const char* start = p;
                    while (p != line.end && !separates[static_cast<unsigned char>(*p)]) ++p;
                    if (p != start) find({start, p});
                    if (p != line.end) ++p;
                }
            }
            for (const Hashed& token : found_) add(token.word, token.hash, numbers);
            counts.push_back(static_cast<std::int64_t>(numbers.size() - before));
        }
    }

    std::size_t size() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return tokens_.size();
    }

    // Whether all numbers are those of tokens.
    bool has(const std::int64_t* numbers, std::size_t count) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return std::all_of(numbers, numbers + count, [&](std::int64_t number) {
            return number >= 0 && static_cast<std::size_t>(number) < tokens_.size();
        });
    }

    // The tokens with some numbers, each ended by LF.
    std::string names(const std::int64_t* numbers, std::size_t count) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::string names;
        for (std::size_t i = 0; i < count; ++i) {
            const Token& token = tokens_[static_cast<std::size_t>(numbers[i])];
            names.append(texts_, token.start, token.size);
            names += '\n';
        }
        return names;
    }

    // Sorts numbers by their tokens, byte by byte, which is the order of code points. The first bytes of a token stand
    // beside its number while it is sorted: most comparisons read nothing else.
    void sort(std::int64_t* numbers, std::size_t count) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        struct Key {
            std::uint64_t first, second;
            const Token* token;
        };
        std::vector<Key> keys(count);
        for (std::size_t i = 0; i < count; ++i) {
            const Token& token = tokens_[static_cast<std::size_t>(numbers[i])];
            keys[i] = {eight_bytes(token, 0), eight_bytes(token, 8), &token};
        }
        std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
            if (a.first != b.first) return a.first < b.first;
            if (a.second != b.second) return a.second < b.second;
            const char* texts = texts_.data();
            const Token &one = *a.token, &other = *b.token;
            const int order = std::memcmp(texts + one.start, texts + other.start, std::min(one.size, other.size));
            return order ? order < 0 : one.size < other.size;
        });
        for (std::size_t i = 0; i < count; ++i) numbers[i] = keys[i].token - tokens_.data();
    }

  private:
    struct Token {
        std::size_t start, size;
        std::uint64_t line;  // the last one that has it
    };
    struct Slot {
        std::uint32_t hash = 0, number = 0;  // from 1; 0 if it is free
    };

    // Eight bytes of a token from a place, the first one highest; zeros after its end.
    std::uint64_t eight_bytes(const Token& token, std::size_t from) const {
        std::uint64_t bytes = 0;
        for (std::size_t i = from; i < from + 8; ++i)
            bytes = bytes << 8 | (i < token.size ? static_cast<unsigned char>(texts_[token.start + i]) : 0u);
        return bytes;
    }

    // wyhash's mixing (Wang Yi, 2019), with unpredictable numbers: nobody can choose tokens that want the same slot.
    static std::uint64_t mix(std::uint64_t hash, std::uint64_t bytes) {
        const Wide product = multiply(hash ^ SECRETS.first, bytes ^ SECRETS.hash);
        return product.low ^ product.high;
    }

    static std::uint64_t hash_of(Text token) {
        std::uint64_t hash = token.size(), rest = 0;
        const char* p = token.begin;
        for (; token.end - p > 8; p += 8) hash = mix(hash, load8(p));
        if (token.size() >= 8)
            rest = load8(token.end - 8);
        else
            for (; p != token.end; ++p) rest = rest << 8 | static_cast<unsigned char>(*p);
        return mix(hash, rest);
    }

    // Keeps a token of the line until all are found. Meanwhile its slot, which may be anywhere, is fetched from memory.
    void find(Text text) {
        found_.push_back({text, static_cast<std::uint32_t>(hash_of(text))});
#if defined(__GNUC__)
        if (!slots_.empty()) __builtin_prefetch(&slots_[found_.back().hash & (slots_.size() - 1)]);
#endif
    }

    void add(Text text, std::uint32_t hash, std::vector<std::int64_t>& numbers) {
        if (3 * (tokens_.size() + 1) > 2 * slots_.size()) grow();
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
            if (!slots_[i].number) {
                if (tokens_.size() >= MOST_TOKENS) throw std::bad_alloc();
                numbers.push_back(static_cast<std::int64_t>(tokens_.size()));
                tokens_.push_back({texts_.size(), text.size(), line_});
                texts_.append(text.begin, text.end);
                slots_[i] = {hash, static_cast<std::uint32_t>(tokens_.size())};
                return;
            }
            if (slots_[i].hash != hash) continue;
            Token& token = tokens_[slots_[i].number - 1];
            if (token.size != text.size() || std::memcmp(texts_.data() + token.start, text.begin, token.size)) continue;
            if (token.line != line_) numbers.push_back(slots_[i].number - 1);
            token.line = line_;
            return;
        }
    }

    void grow() {
        std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
        old.swap(slots_);
        const std::size_t mask = slots_.size() - 1;
        for (const Slot& slot : old) {
            if (!slot.number) continue;
            std::size_t i = slot.hash & mask;
            while (slots_[i].number) i = (i + 1) & mask;
            slots_[i] = slot;
        }
    }

    static constexpr std::size_t MOST_TOKENS = std::numeric_limits<std::uint32_t>::max() - 1;

    mutable std::mutex mutex_;
    std::string texts_;
    std::vector<Token> tokens_;
    std::vector<Slot> slots_;
    std::vector<Hashed> found_;  // on a line
    std::uint64_t line_ = 0;
};
