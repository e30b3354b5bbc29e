// Fuzz the scoring of output lines. Each input is scored as for the checker, by a reader that has read all inputs before,
// and the flags of each line must agree with its bytes and its loss. For a quarter of the inputs, since it takes twice as
// long, one more property must hold, which the first byte chooses. scripts/fuzz.py compares a sample with the Python twin.

#include "../../geval_py/scoring/kernel/formatting.hpp"
#include "../../geval_py/scoring/kernel/packed_words.hpp"
#include "../../geval_py/scoring/kernel/profile.hpp"
#include "../../geval_py/scoring/kernel/tokens.hpp"
#include "grammar.hpp"
#include "kernel.hpp"

namespace {

bool has(Text text, bool (*is)(unsigned char)) {
    return std::any_of(text.begin, text.end, [is](char c) { return is(static_cast<unsigned char>(c)); });
}

// The flags of a line agree with each other, with its bytes and with its loss.
void check_flags(Text line, double loss, std::uint32_t flags) {
    const auto implies = [flags](std::uint32_t some, std::uint32_t others) { return !(flags & some) || (flags & others); };
    EXPECT(has(line, [](unsigned char c) { return c == '\r'; }) == ((flags & CARRIAGE_RETURN) != 0));
    EXPECT(has(line, [](unsigned char c) { return c >= 0x80; }) == ((flags & NOT_ASCII) != 0));
    EXPECT(has(line, [](unsigned char c) { return c >= 'A' && c <= 'Z'; }) == ((flags & CAPITAL) != 0));
    EXPECT(has(line, is_control) == ((flags & CONTROL) != 0));
    EXPECT(std::isnan(loss) == ((flags & MALFORMED) != 0));
    const std::uint32_t kind = flags & ERROR_KINDS;
    if (flags & MALFORMED) {
        EXPECT((kind & (kind - 1)) == 0);
        EXPECT(kind || (flags & NOT_ASCII));
        EXPECT(!(flags & ~(MALFORMED | ERROR_KINDS | CARRIAGE_RETURN | NOT_ASCII | CAPITAL | CONTROL)));
        return;
    }
    EXPECT(!kind && loss >= 0);
    EXPECT((flags & (ABOVE_ONE | BELOW_ONE)) != (ABOVE_ONE | BELOW_ONE));
    EXPECT(implies(ROUNDED, ABOVE_ONE | BELOW_ONE));
    EXPECT(implies(ZERO_REST | REST_ALONE, HAS_REST));
    EXPECT(implies(VECTOR | LOOKS_LIKE_PROBABILITIES | ALL_ZERO, LOGARITHMS));
    EXPECT(!((flags & VECTOR) && (flags & (SEPARATOR | HAS_REST | REPEATED | ZERO_ENTRY | TINY))));
    EXPECT(!((flags & LOGARITHMS) && (flags & (ROUNDED | ZERO_REST))));
    EXPECT(((flags & VECTOR) != 0) == !std::memchr(line.begin, ':', line.size()));
}

// A reader that has read nothing else gives the same, and one that only scores the same losses, without some flags.
void check_plain(const Block& block, Text outputs, const Scored& reused) {
    const Scored scored = score(outputs, text_of(block.expected), block.bits, block.first_line, true);
    EXPECT(same_bits(reused.losses, scored.losses) && reused.flags == scored.flags);
    const Scored plain = score(outputs, text_of(block.expected), block.bits, block.first_line, false);
    EXPECT(same_bits(plain.losses, scored.losses));
    EXPECT(plain.result.end.malformed == scored.result.end.malformed && plain.result.undecided == scored.result.undecided);
    EXPECT(same_bits(plain.result.bound, scored.result.bound));
    for (std::size_t i = 0; i < block.lines; ++i)
        EXPECT((scored.flags[i] & ~(REPEATED | TINY | ROUNDED)) == (plain.flags[i] & ~(REPEATED | TINY | ROUNDED)));
}

// A block cut after any line is scored as a whole one: threads and byte ranges give what one reader gives.
void check_cut(const Block& block, Text outputs, const Scored& scored) {
    Text rest = outputs;
    const std::size_t first = block.lines ? block.first_line % (block.lines + 1) : 0;
    for (std::size_t i = 0; i < first; ++i) take_line(rest);
    Scored joined{{}, {}, {}};
    double bound = 0;
    std::size_t done = 0;
    for (const Text text : {Text{outputs.begin, rest.begin}, rest}) {
        const Exact part(text);
        const std::size_t lines = count_lines(text);
        const Text expected{block.expected.data(), block.expected.data() + lines * (block.word.size() + 1)};
        const Scored piece = score(part.text(), expected, block.bits, block.first_line + done, true);
        joined.losses.insert(joined.losses.end(), piece.losses.begin(), piece.losses.end());
        joined.flags.insert(joined.flags.end(), piece.flags.begin(), piece.flags.end());
        if (joined.result.end.malformed == NONE && piece.result.end.malformed != NONE)
            joined.result.end.malformed = static_cast<std::ptrdiff_t>(done) + piece.result.end.malformed;
        bound = lines ? std::max(bound, piece.result.bound) : bound;
        done += lines;
    }
    EXPECT(done == block.lines);
    EXPECT(same_bits(joined.losses, scored.losses) && joined.flags == scored.flags);
    EXPECT(joined.result.end.malformed == scored.result.end.malformed);
    const Scored whole = score(outputs, text_of(block.expected), block.bits, block.first_line, true);
    EXPECT(!block.lines || bound == whole.result.bound);
}

// Profiles have the same losses, and their words are all in bins.
void check_profiles(const Block& block, Text outputs, const Scored& scored) {
    // A large table of buckets takes as long as a hundred properties.
    if (block.first_line % (block.bits > 10 && block.bits <= MAX_TABLE_BITS ? 64 : 4)) return;
    const ProfiledBlock profiled =
        profile_block(outputs, text_of(block.expected), block.lines, block.bits, block.first_line);
    const std::ptrdiff_t malformed = profiled.end.malformed;
    EXPECT(profiled.end.equal && malformed == scored.result.end.malformed);
    const std::size_t read = malformed < 0 ? block.lines : static_cast<std::size_t>(malformed);
    for (std::size_t i = 0; i < read; ++i) {
        const auto column = [&](int number) {
            return profiled.columns[static_cast<std::size_t>(number) * block.lines + i];
        };
        EXPECT(same_bits(column(LOSS), scored.losses[i]));
        EXPECT((column(IS_VECTOR) != 0) == ((scored.flags[i] & VECTOR) != 0));
        EXPECT(column(ENTROPY) >= -1e-6 && column(ENTROPY) <= block.bits * 0.6931471805599454 + 1e-6);
        if (column(IS_VECTOR) != 0) continue;
        EXPECT(column(WORD_MASS) >= 0 && column(WORD_MASS) <= 1 + 1e-6);
        EXPECT(column(REST) >= -1e-300 && column(REST) <= 1 + 1e-6);
        EXPECT(column(GUESS_MASS) >= column(WORD_MASS) || !column(LISTED));
        double words = 0, mass = column(REST);
        for (int bin = 0; bin < WORD_BINS; ++bin) words += column(COUNTS + bin), mass += column(MASSES + bin);
        EXPECT(words == column(WORDS));
        EXPECT(is_close(mass, 1, 1e-6));
        EXPECT(column(VARIANCE) >= 0);
    }
}

// Carriage returns change nothing but their flag; nor does it matter what follows a line, nor whether it has an LF.
void check_surroundings(const Block& block, Text outputs, const Scored& scored) {
    if (!block.lines) return;
    std::string other(outputs.begin, outputs.end);
    if (other.back() == '\n') other.pop_back();
    for (std::size_t at = block.first_line % 5; at <= other.size(); at += 6) other.insert(at, 1, '\r');
    if (count_lines(text_of(other)) != block.lines) return;  // there was an empty last line
    const Exact exact(text_of(other));
    const Scored changed = score(exact.text(), text_of(block.expected), block.bits, block.first_line, true);
    for (std::size_t i = 0; i < block.lines; ++i) {
        if ((scored.flags[i] | changed.flags[i]) & NOT_ASCII) continue;  // a carriage return may part a character
        EXPECT(same_bits(changed.losses[i], scored.losses[i]));
        EXPECT((changed.flags[i] | CARRIAGE_RETURN) == (scored.flags[i] | CARRIAGE_RETURN));
    }
}

// The entries in the opposite order have the same loss, but for rounding.
void check_order(const Block& block, Text outputs, const Scored& scored) {
    std::string other;
    std::vector<Text> words;
    for (Text left = outputs; left.begin != left.end;) {
        const Text line = take_line(left);
        words.clear();
        for (const char* p = line.begin;; ++p) {
            const char* end = std::find(p, line.end, ' ');
            words.push_back({p, end});
            p = end;
            if (p == line.end) break;
        }
        const bool vector = !std::memchr(line.begin, ':', line.size());
        if (!vector) std::reverse(words.begin(), words.end());
        for (std::size_t i = 0; i < words.size(); ++i)
            (other += i ? " " : "").append(words[i].begin, words[i].end);
        other += '\n';
    }
    const Scored changed = score(text_of(other), text_of(block.expected), block.bits, block.first_line, true);
    // What the order of additions may change: whether a total is just above or below a limit.
    constexpr std::uint32_t LIMITS = ABOVE_ONE | BELOW_ONE | ROUNDED | ERROR_KINDS;
    for (std::size_t i = 0; i < block.lines; ++i) {
        EXPECT((changed.flags[i] & ~LIMITS) == (scored.flags[i] & ~LIMITS));
        if (!(scored.flags[i] & MALFORMED) && changed.flags[i] == scored.flags[i])
            EXPECT(is_close(changed.losses[i], scored.losses[i], 2 * TOLERANCE));
    }
}

// The entries of a line, written by the kernel and read again, have the same loss; as a row of numbers, nearly the same.
void check_written(const Block& block, Text outputs, const Scored& scored) {
    Line line(block.bits, Purpose::profiles);
    Text left = outputs;
    std::vector<double> values, row;
    std::vector<std::int64_t> ids;
    for (std::size_t i = 0; i < block.lines; ++i) {
        const Text text = take_line(left);
        unsigned flags;
        const auto seed = static_cast<std::uint32_t>(block.first_line + i);
        std::string answer = block.word;
        const Text expected = padded(answer);
        line.score(text, left.end, expected, expected.end, seed, flags);
        if (flags & (MALFORMED | VECTOR)) continue;
        std::string words, vocabulary, written, copy;
        values.clear(), row.clear(), ids.clear();
        for (const Hashed& word : line.words()) vocabulary.append(word.word.begin, word.word.end) += '\n';
        for (std::size_t place = 0; place < line.values().size(); ++place) {
            const std::uint32_t number = line.numbers()[place];
            values.push_back(line.values()[place]);
            if (number != NO_WORD) {
                words.append(line.words()[number].word.begin, line.words()[number].word.end);
                row.push_back(values.back());
                ids.push_back(number);
            }
            words += '\n';
        }
        EXPECT(format_entries(text_of(words), values.data(), values.size(), -INFINITE, INFINITE, written));
        const Exact again(text_of(written));
        const Scored reread = score(again.text(), text_of(answer = block.word + "\n"), block.bits, seed, false);
        EXPECT(reread.losses[0] == scored.losses[i]);
        if (line.rests().size() > 1) continue;
        const PackedWords packed(text_of(vocabulary));
        RowScorer<double> scorer(packed, block.bits, line.are_probabilities() ? Unit::probabilities : Unit::logarithms);
        const double rest = line.rests().sum();
        double loss;
        std::string word;
        const Text answers = decode(text_of(block.word), text_of(block.word).end, word);
        const double log_total = line.values().log_sum_exp(0);
        if (!line.are_probabilities() && std::abs(log_total - MAX_LOG_PLAUSIBLE) < 1e-9) continue;
        const bool is_refused = !line.are_probabilities() && log_total > MAX_LOG_PLAUSIBLE;
        EXPECT(scorer.score({1, ids.size(), reinterpret_cast<const char*>(row.data()), 0, ids.data(),
                             line.rests().empty() ? nullptr : &rest},
                            answers, &seed, &loss) == (is_refused ? 0 : NONE));
        if (is_refused) continue;
        EXPECT(is_close(loss, scored.losses[i], 1e-11));
    }
}

// Tokens between spaces are numbered in the order in which they appear.
void check_tokens(const Block& block, Text outputs, const Scored&) {
    TokenTable table;
    std::vector<std::int64_t> counts, numbers;
    table.number(outputs, text_of(" :"), {}, counts, numbers);
    EXPECT(counts.size() == block.lines);
    EXPECT(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == static_cast<std::int64_t>(numbers.size()));
    EXPECT(table.has(numbers.data(), numbers.size()));
    std::vector<std::int64_t> all(table.size());
    std::iota(all.begin(), all.end(), 0);
    const std::string names = table.names(all.data(), all.size());
    std::vector<std::int64_t> again_counts, again;
    table.number(text_of(names), {nullptr, nullptr}, {}, again_counts, again);
    EXPECT(again == all && table.size() == all.size());
    table.sort(again.data(), again.size());
    const std::string sorted = table.names(again.data(), again.size());
    std::string before;
    for (Text left = text_of(sorted); left.begin != left.end;) {
        const Text name = take_line(left);
        std::string token(name.begin, name.end);
        EXPECT(before < token);
        before.swap(token);
    }
    // Where tokens are counted first, at least those on two lines are numbered then.
    unsigned char seen[64] = {};
    TokenTable frequent;
    std::vector<std::int64_t> lines_of(all.size()), counted, none, some_counts, some;
    for (const std::int64_t number : numbers) ++lines_of[static_cast<std::size_t>(number)];
    frequent.number(outputs, text_of(" :"), {seen, 64, 0}, counted, none);
    EXPECT(none.empty() && frequent.size() == 0);
    frequent.number(outputs, text_of(" :"), {seen, 64, 2}, some_counts, some);
    EXPECT(some_counts.size() == block.lines && some.size() <= numbers.size());
    EXPECT(static_cast<std::ptrdiff_t>(some.size()) >= std::count_if(numbers.begin(), numbers.end(), [&](std::int64_t number) {
        return lines_of[static_cast<std::size_t>(number)] > 1;
    }));
}

// The number of lines is that of LF, and of a last line without one.
void check_count(const Block& block, Text outputs, const Scored&) {
    std::size_t lines = 0;
    for (Text left = outputs; left.begin != left.end; ++lines) take_line(left);
    EXPECT(lines == block.lines);
}

constexpr void (*PROPERTIES[])(const Block&, Text, const Scored&) = {
    check_plain, check_cut,     check_profiles, check_surroundings,
    check_order, check_written, check_tokens,   check_count,
};

// Appends every nth input to a file, for scripts/fuzz.py: its size in four bytes, and its bytes.
void keep_sample(const std::uint8_t* data, std::size_t size) {
    static const char* const path = std::getenv("GEVAL_FUZZ_SAMPLE");
    static std::FILE* const file = path ? std::fopen(path, "ab") : nullptr;
    static const char* const every = std::getenv("GEVAL_FUZZ_EVERY");
    static const std::uint64_t step = every ? std::max(1ul, std::strtoul(every, nullptr, 10)) : 10000;
    static std::uint64_t number = 0;
    if (!file || ++number % step) return;
    const std::uint8_t length[] = {static_cast<std::uint8_t>(size), static_cast<std::uint8_t>(size >> 8),
                                   static_cast<std::uint8_t>(size >> 16), 0};
    std::fwrite(length, 1, sizeof length, file);
    std::fwrite(data, 1, size, file);
    std::fflush(file);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
    return mutate_block(data, size, max_size, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Block block;
    static Scored scored;
    static std::unique_ptr<Line> readers[Block::MAX_BITS + 1];  // they remember nothing of earlier inputs
    keep_sample(data, size);
    if (!block.read(data, size)) return 0;
    auto& reader = readers[block.bits];
    if (!reader) reader = std::make_unique<Line>(block.bits, Purpose::rules);
    const Exact copy(block.outputs);
    scored.losses.resize(block.lines), scored.flags.resize(block.lines);
    scored.result = {};
    Text outputs = copy.text(), expected = text_of(block.expected);
    for (std::size_t i = 0; i < block.lines; ++i) {
        const Text line = take_line(outputs), word = take_line(expected);
        scored.losses[i] = reader->score(line, outputs.end, word, expected.end,
                                         static_cast<std::uint32_t>(block.first_line + i), scored.flags[i]);
        check_flags(line, scored.losses[i], scored.flags[i]);
        if (!(scored.flags[i] & MALFORMED))
            EXPECT(scored.losses[i] <= reader->bound() * (1 + 1e-12) + 1e-12);
        else if (scored.result.end.malformed == NONE)
            scored.result.end.malformed = static_cast<std::ptrdiff_t>(i);
    }
    if (block.first_line >> 8 & 3) return 0;
    PROPERTIES[std::min<std::size_t>(block.property, std::size(PROPERTIES) - 1)](block, copy.text(), scored);
    return 0;
}
