// The scores of a text by a binary file of KenLM that holds probing hash tables: the twin of ProbingModel in
// geval_py/modelling/kenlm_models.py, which describes the file.
//
// The file is not trusted: what it says of its sizes is checked once, an id before it is used, and a search ends after all
// buckets.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "murmur.hpp"
#include "prefetch.hpp"
#include "text.hpp"

namespace {

constexpr std::uint64_t MOST_NGRAMS = std::uint64_t{1} << 40;
constexpr std::size_t MOST_PROBING_ORDER = 32;

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

}  // namespace
