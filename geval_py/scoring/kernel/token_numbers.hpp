// Numbers for the tokens of texts: the twin of reference.TokenNumbers.

// The distinct tokens of all texts so far, numbered from 0 in the order of their first occurrence.
class TokenNumbers {
  public:
    std::size_t size() const { return starts_.size(); }

    // Numbers the tokens of lines, each ended by LF: for each line, how many distinct ones it has, and their numbers.
    void add(Text lines, std::vector<std::int32_t>& numbers, std::vector<std::int32_t>& counts) {
        while (lines.begin != lines.end) {
            const Text line = take_line(lines);
            const std::size_t before = numbers.size();
            ++line_;
            for (const char* p = line.begin; p != line.end;) {
                const char* end = p;
                while (end != line.end && *end != ' ' && *end != '\t' && *end != ':') ++end;
                if (end != p) {
                    const std::uint32_t number = find({p, end});
                    if (last_line_[number] != line_) numbers.push_back(static_cast<std::int32_t>(number));
                    last_line_[number] = line_;
                }
                p = end == line.end ? end : end + 1;
            }
            counts.push_back(static_cast<std::int32_t>(numbers.size() - before));
        }
    }

    // The tokens from a number on, each ended by LF.
    Text tokens_from(std::size_t first) const {
        const char* begin = texts_.data();
        return {begin + (first < size() ? starts_[first] : texts_.size()), begin + texts_.size()};
    }

    // All tokens by their bytes, which is the order of their characters, each ended by LF; and their numbers.
    void sort(std::string& sorted, std::vector<std::int64_t>& numbers) const {
        struct Key {
            std::uint64_t first, second;  // eight bytes each, the first one highest
            std::uint32_t number;
        };
        std::vector<Key> keys(size());
        for (std::uint32_t number = 0; number < size(); ++number) {
            std::uint64_t parts[2] = {};
            const Text text = token(number);
            for (std::size_t i = 0; i < 16; ++i)
                parts[i / 8] = parts[i / 8] << 8 | (i < text.size() ? static_cast<unsigned char>(text.begin[i]) : 0);
            keys[number] = {parts[0], parts[1], number};
        }
        std::sort(keys.begin(), keys.end(), [this](const Key& a, const Key& b) {
            if (a.first != b.first) return a.first < b.first;
            if (a.second != b.second) return a.second < b.second;
            const Text one = token(a.number), other = token(b.number);
            const int order = std::memcmp(one.begin, other.begin, std::min(one.size(), other.size()));
            return order ? order < 0 : one.size() < other.size();
        });
        sorted.reserve(texts_.size());
        numbers.reserve(size());
        for (const Key& key : keys) {
            const Text text = token(key.number);
            sorted.append(text.begin, text.size() + 1);
            numbers.push_back(key.number);
        }
    }

  private:
    struct Slot {
        std::uint32_t hash = 0, number = FREE;
    };
    static constexpr std::uint32_t FREE = ~std::uint32_t{0};

    Text token(std::size_t number) const {
        const std::size_t end = number + 1 < size() ? starts_[number + 1] : texts_.size();
        return {texts_.data() + starts_[number], texts_.data() + end - 1};
    }

    // Depends on numbers that nobody can predict, so that nobody can choose tokens that all want the same slot.
    static std::uint64_t hash_of(Text token) {
        std::uint64_t h = SECRETS.first ^ token.size();
        const auto mix = [&h](std::uint64_t bytes) {
            const Wide product = multiply(h ^ bytes, SECRETS.hash);
            h = product.low ^ product.high;
        };
        const char* p = token.begin;
        for (; token.end - p >= 8; p += 8) mix(load8(p));
        std::uint64_t rest = 0;
        std::memcpy(&rest, p, static_cast<std::size_t>(token.end - p));
        mix(rest);
        mix(SECRETS.first);
        return h;
    }

    std::uint32_t find(Text token) {
        if (2 * (size() + 1) > slots_.size()) grow();
        const std::uint64_t hash = hash_of(token);
        const auto kept = static_cast<std::uint32_t>(hash);
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t i = hash >> 32 & mask;; i = (i + 1) & mask) {
            Slot& slot = slots_[i];
            if (slot.number == FREE) {
                const std::size_t start = texts_.size();
                last_line_.push_back(0);
                hashes_.push_back(hash);
                texts_.append(token.begin, token.end).push_back('\n');
                starts_.push_back(start);
                slot = {kept, static_cast<std::uint32_t>(size() - 1)};
                return slot.number;
            }
            if (slot.hash == kept) {
                const Text known = this->token(slot.number);
                if (std::equal(known.begin, known.end, token.begin, token.end)) return slot.number;
            }
        }
    }

    void grow() {
        slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), Slot{});
        const std::size_t mask = slots_.size() - 1;
        for (std::uint32_t number = 0; number < size(); ++number) {
            const std::uint64_t hash = hashes_[number];
            std::size_t i = hash >> 32 & mask;
            while (slots_[i].number != FREE) i = (i + 1) & mask;
            slots_[i] = {static_cast<std::uint32_t>(hash), number};
        }
    }

    std::vector<Slot> slots_;
    std::string texts_;
    std::vector<std::size_t> starts_;
    std::vector<std::uint64_t> hashes_, last_line_;
    std::uint64_t line_ = 0;
};
