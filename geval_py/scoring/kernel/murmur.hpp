// MurmurHash, by Austin Appleby, in the public domain.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "text.hpp"

namespace {

inline std::uint32_t rotate(std::uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

inline std::uint32_t scramble(std::uint32_t k) { return rotate(k * 0xcc9e2d51u, 15) * 0x1b873593u; }

inline std::uint32_t mix_block(std::uint32_t h, std::uint64_t bytes) {
    return rotate(h ^ scramble(static_cast<std::uint32_t>(bytes)), 13) * 5 + 0xe6546b64u;
}

// Mixes in the last bytes, fewer than eight, with zeros after them. Most words have no others: they are hashed without a
// branch that depends on their length, which processors could not predict.
inline std::uint32_t murmur3_end(std::uint32_t h, std::uint64_t bytes, int left, std::size_t size) {
    const std::uint32_t mixed = mix_block(h, bytes);
    h = left >= 4 ? mixed : h;
    bytes = left >= 4 ? bytes >> 32 : bytes;
    h ^= scramble(static_cast<std::uint32_t>(bytes)) ^ static_cast<std::uint32_t>(size);
    h = (h ^ (h >> 16)) * 0x85ebca6bu;
    h = (h ^ (h >> 13)) * 0xc2b2ae35u;
    return h ^ (h >> 16);
}

// MurmurHash3_x86_32 of a word in a padded text.
inline std::uint32_t murmur3(Text word, std::uint32_t seed) {
    std::uint32_t h = seed;
    const char* p = word.begin;
    for (; word.end - p >= 8; p += 8) {
        const std::uint64_t bytes = load8(p);
        h = mix_block(mix_block(h, bytes), bytes >> 32);
    }
    const int left = static_cast<int>(word.end - p);
    return murmur3_end(h, load8(p) & ((std::uint64_t{1} << 8 * left) - 1), left, word.size());
}

// MurmurHash64A, as KenLM hashes words.
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

}  // namespace
