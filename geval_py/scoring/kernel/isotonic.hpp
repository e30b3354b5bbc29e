// The fast twin of isotonic in reference.py, with the same sums in the same order.

#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace {

// Pools adjacent violators: first all that follow, then all that precede.
inline std::vector<double> isotonic(const double* values, const double* weights, std::size_t size) {
    struct Pool {
        double value, weight;
        std::size_t end;  // the place after its last member
    };
    std::vector<Pool> pools;
    const auto violates = [&](double value) { return !pools.empty() && pools.back().value >= value; };
    for (std::size_t i = 0; i < size; ++i) {
        double value = values[i], weight = weights[i], sum = weight * value;
        bool follows = violates(value);
        while (violates(value)) {
            sum = pools.back().weight * pools.back().value + sum;
            weight += pools.back().weight;
            pools.pop_back();
            value = sum / weight;
            for (; follows && i + 1 < size && value >= values[i + 1]; value = sum / weight) {
                ++i;
                sum += weights[i] * values[i];
                weight += weights[i];
            }
            follows = false;
        }
        pools.push_back({value, weight, i + 1});
    }
    std::vector<double> rising(size);
    std::size_t start = 0;
    for (const Pool& pool : pools) {
        std::fill(rising.begin() + start, rising.begin() + pool.end, pool.value);
        start = pool.end;
    }
    return rising;
}

}  // namespace
