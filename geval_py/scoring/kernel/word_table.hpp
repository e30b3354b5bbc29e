// Words that are numbered in their order of appearance.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "murmur.hpp"
#include "text.hpp"

namespace {

// Numbers words from 0 on in their order of appearance.
class WordTable {
  public:
    // The words, each with an LF behind it; alias is another name of the first word.
    WordTable(Text words, Text alias) {
        while (words.begin != words.end) number(take_line(words), true);
        alias_.assign(alias.begin, alias.end);
        double_slots();
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
    std::size_t size() const { return starts_.size() - 1; }
    Text word(std::size_t number) const { return {text_.data() + starts_[number], text_.data() + starts_[number + 1] - 1}; }
    std::mutex mutex;

  private:
    struct Slot {
        std::uint32_t tag, next;  // the number of the word and 1; 0 if the slot is empty
    };
    static std::uint64_t hash(Text word) { return murmur2(word); }
    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
    bool is(std::size_t number, Text text) const {
        const auto same = [&](Text name) { return std::equal(name.begin, name.end, text.begin, text.end); };
        return same(word(number)) || (!number && same({alias_.data(), alias_.data() + alias_.size()}));
    }
    Slot& slot_of(Text word) {
        std::size_t at = hash(word) & (slots_.size() - 1);
        while (slots_[at].next) at = (at + 1) & (slots_.size() - 1);
        return slots_[at];
    }
    void double_slots() {
        slots_.assign(2 * slots_.size(), {0, 0});
        for (std::size_t i = 0; i < size(); ++i)
            slot_of(word(i)) = {tag_of(hash(word(i))), static_cast<std::uint32_t>(i + 1)};
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
    found.ids.reserve(text.size() / 8);
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

}  // namespace
