// The search for n-grams among numbers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "prefetch.hpp"

namespace {

// Finds the rows of different numbers that are not negative; they stay where they are.
class KeyIndex {
  public:
    KeyIndex(const std::int64_t* keys, std::size_t number) : keys_(keys) {
        while (slots() < 2 * number) ++bits_;
        rows_.resize(slots());
        for (std::size_t row = 0; row < number; ++row) {
            if (row + AHEAD < number) prefetch(&rows_[slot_of(keys[row + AHEAD])]);
            std::size_t at = slot_of(keys[row]);
            while (rows_[at]) at = (at + 1) & (slots() - 1);
            rows_[at] = static_cast<std::uint32_t>(row + 1);
        }
    }
    // Writes the row of each number, -1 if there is none.
    void find(const std::int64_t* wanted, std::size_t number, std::int32_t* rows) const {
        for (std::size_t i = 0; i < number; ++i) {
            if (i + 2 * AHEAD < number) prefetch(&rows_[slot_of(wanted[i + 2 * AHEAD])]);
            if (i + AHEAD < number)
                if (const std::uint32_t row = rows_[slot_of(wanted[i + AHEAD])])
                    prefetch(&keys_[row - 1]);
            rows[i] = wanted[i] < 0 ? -1 : row_of(wanted[i]);
        }
    }
    // The row of a number that is not negative, -1 if there is none.
    std::int32_t row_of(std::int64_t key) const {
        for (std::size_t at = slot_of(key); rows_[at]; at = (at + 1) & (slots() - 1))
            if (keys_[rows_[at] - 1] == key) return static_cast<std::int32_t>(rows_[at] - 1);
        return -1;
    }

  private:
    static constexpr std::size_t AHEAD = 8;
    std::size_t slots() const { return std::size_t{1} << bits_; }
    std::size_t slot_of(std::int64_t key) const {
        return static_cast<std::size_t>(static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15u >> (64 - bits_));
    }

    const std::int64_t* keys_;
    int bits_ = 4;
    std::vector<std::uint32_t> rows_;  // and 1; 0 if a slot is empty
};

}  // namespace
