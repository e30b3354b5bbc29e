// The losses of lines under the seeds of other lines: the twin of reference.reseeded_losses.
//
// A word is hashed under many seeds at once, in loops that compilers turn into vector instructions.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dispatch.hpp"
#include "flags.hpp"
#include "line.hpp"
#include "murmur.hpp"
#include "packed_words.hpp"
#include "text.hpp"

namespace {

GEVAL_INLINE bool hash_under_seeds_inline(Text word, std::uint32_t seed, const std::uint32_t* buckets, std::uint32_t mask,
                                          std::uint32_t* hashes) {
    std::uint32_t h[SEED_LANES];
    for (std::size_t lane = 0; lane < SEED_LANES; ++lane) h[lane] = seed + static_cast<std::uint32_t>(lane);
    const char* p = word.begin;
    for (; word.end - p >= 4; p += 4) {
        const std::uint32_t mixed = scramble(static_cast<std::uint32_t>(load8(p)));
        for (std::size_t lane = 0; lane < SEED_LANES; ++lane) h[lane] = rotate(h[lane] ^ mixed, 13) * 5 + 0xe6546b64u;
    }
    const std::uint64_t last = load8(p) & ((std::uint64_t{1} << 8 * (word.end - p)) - 1);
    const std::uint32_t mixed = scramble(static_cast<std::uint32_t>(last)) ^ static_cast<std::uint32_t>(word.size());
    std::uint32_t any = 0;
    for (std::size_t lane = 0; lane < SEED_LANES; ++lane) {
        hashes[lane] = PackedWords::finish(h[lane] ^ mixed);
        any |= ((hashes[lane] ^ buckets[lane]) & mask) == 0;
    }
    return any;
}

#define GEVAL_HASH_UNDER_SEEDS(NAME, TARGET)                                                                       \
    TARGET bool hash_under_seeds_##NAME(Text word, std::uint32_t seed, const std::uint32_t* buckets, std::uint32_t mask, \
                                        std::uint32_t* hashes) {                                                   \
        return hash_under_seeds_inline(word, seed, buckets, mask, hashes);                                         \
    }

GEVAL_HASH_UNDER_SEEDS(portable, )
#if defined(GEVAL_DISPATCHES)
GEVAL_HASH_UNDER_SEEDS(avx2, GEVAL_AVX2)
#endif

// The losses of lines under the seeds after their own: all lines under the first, then under the second, and so on.
BlockEnd score_under_seeds(Text outputs, Text expected, std::size_t lines, int bits, std::uint64_t first_line,
                           std::size_t seeds, std::vector<double>& losses) {
    losses.resize(seeds * lines);
    Line line(bits, Purpose::seeds);
    return read_block(line, outputs, expected, lines, first_line, false, [&](std::size_t i, double, unsigned flags) {
        line.losses_under(static_cast<std::uint32_t>(first_line + i + 1), seeds, flags & VECTOR, GEVAL_CHOOSE(hash_under_seeds),
                          losses.data() + i, lines);
    });
}

}  // namespace
