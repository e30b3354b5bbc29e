// The fast twin of isotonic and honest_fits in reference.py, with the same sums in the same order.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "wide.hpp"

namespace {

// The value of each pool, and the place after its last member.
class Pools {
  public:
    // Pools adjacent violators: first all that follow, then all that precede.
    void fit(const double* values, const double* weights, std::size_t size) {
        values_.resize(size), weights_.resize(size), ends_.resize(size);
        size_ = 0;
        for (std::size_t i = 0; i < size; ++i) {
            double value = values[i], weight = weights[i];
            if (violates(value)) {
                double sum = weights_[size_ - 1] * values_[size_ - 1] + weight * value;
                weight += weights_[--size_];
                value = sum / weight;
                while (i + 1 < size && value >= values[i + 1]) {
                    ++i;
                    sum += weights[i] * values[i];
                    weight += weights[i];
                    value = sum / weight;
                }
                while (violates(value)) {
                    sum += weights_[size_ - 1] * values_[size_ - 1];
                    weight += weights_[--size_];
                    value = sum / weight;
                }
            }
            values_[size_] = value, weights_[size_] = weight, ends_[size_++] = i + 1;
        }
    }

    // The fitted value of each place; where places stand for several, each ends where the next one starts.
    void spread(double* values, const std::size_t* ends = nullptr) const {
        double* to = values;
        for (std::size_t pool = 0; pool < size_; ++pool) {
            double* end = values + (ends ? ends[ends_[pool] - 1] : ends_[pool]);
            std::fill(to, end, values_[pool]);
            to = end;
        }
    }

  private:
    bool violates(double value) const { return size_ && values_[size_ - 1] >= value; }

    std::vector<double> values_, weights_;
    std::vector<std::size_t> ends_;
    std::size_t size_ = 0;
};

inline std::vector<double> isotonic(const double* values, const double* weights, std::size_t size) {
    Pools pools;
    pools.fit(values, weights, size);
    std::vector<double> found(size);
    pools.spread(found.data());
    return found;
}

// The generator PCG64 as numpy has it: M. O'Neill, "PCG: a family of simple fast space-efficient statistically good
// algorithms for random number generation", 2014.
class Pcg64 {
  public:
    Pcg64(Wide state, Wide increment) : state_(state), increment_(increment) {}

    // In [0, 1).
    double next() {
        constexpr std::uint64_t HIGH = 2549297995355413924u, LOW = 4865540595714422341u;
        Wide next = multiply(state_.low, LOW);
        next.high += state_.high * LOW + state_.low * HIGH + increment_.high;
        next.low += increment_.low;
        next.high += next.low < increment_.low;
        state_ = next;
        const std::uint64_t mixed = next.high ^ next.low;
        const unsigned by = static_cast<unsigned>(next.high >> 58);
        return static_cast<double>((mixed >> by | mixed << (-by & 63)) >> 11) * 0x1p-53;
    }

  private:
    Wide state_, increment_;
};

// The sum of term(first) to term(first + size - 1) in numpy's order, by halves.
template <typename Term>
double pairwise_sum(Term term, std::size_t first, std::size_t size) {
    if (size > 128) {
        const std::size_t half = size / 2 / 8 * 8;
        return pairwise_sum(term, first, half) + pairwise_sum(term, first + half, size - half);
    }
    double sum = 0;
    std::size_t i = 0;
    if (size >= 8) {
        double sums[8];
        for (; i < 8; ++i) sums[i] = term(first + i);
        for (; i + 8 <= size; i += 8)
            for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += term(first + i + lane);
        sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    }
    for (; i < size; ++i) sum += term(first + i);
    return sum;
}

// Forecasts: different probabilities, rising, with the number of things of each; the place of each thing among them; the
// places where the curve is wanted, and where bins start. Beside them stand as many others, each in one of some bins.
struct Honest {
    const double *p, *n;
    std::size_t size;
    const std::int64_t* places;
    std::size_t things;
    const std::int64_t *ends, *starts;
    std::size_t end_count, start_count;
    const double* others;  // null for none
    const std::int64_t* other_bins;
    std::size_t other_count;
};

// By draw.
struct HonestFits {
    std::vector<double> excesses, curves, bins, other_bins;
};

// Draws things and fits curves. A run of probabilities without a hit is fitted as one with all their things: whole numbers
// have the same sums in any order.
class HonestDraws {
  public:
    explicit HonestDraws(const Honest& of)
        : of_(of), of_things_(of.things), before_(of.size + 1), squares_(of.size), curve_(of.size),
          values_(2 * of.size + 1), weights_(2 * of.size + 1), hits_(of.size), ends_(2 * of.size + 1) {
        for (std::size_t i = 0; i < of.things; ++i) of_things_[i] = of.p[of.places[i]];
        places_.assign(of.places, of.places + of.things);
        if (of.others) other_bins_.assign(of.other_bins, of.other_bins + of.things);
        for (std::size_t i = 0; i < of.size; ++i) squares_[i] = of.n[i] * of.p[i] * of.p[i];
        std::partial_sum(of.n, of.n + of.size, before_.begin() + 1);
        other_hits_.resize(of.other_count);
    }

    void draw(Pcg64& random, HonestFits& found) {
        count_hits(random);
        fit();
        found.other_bins.insert(found.other_bins.end(), other_hits_.begin(), other_hits_.end());
        for (std::size_t bin = 0; bin < of_.start_count; ++bin) {
            const auto end = bin + 1 < of_.start_count ? hits_.begin() + of_.starts[bin + 1] : hits_.end();
            found.bins.push_back(static_cast<double>(std::accumulate(hits_.begin() + of_.starts[bin], end, std::uint32_t{0})));
        }
        for (std::size_t i = 0; i < of_.end_count; ++i) found.curves.push_back(curve_[static_cast<std::size_t>(of_.ends[i])]);
        const double *p = of_.p, *n = of_.n, *curve = curve_.data(), *squares = squares_.data();
        const std::uint32_t* hits = hits_.data();
        const auto as_said = [=](std::size_t i) { return (squares[i] - 2 * p[i] * hits[i]) + hits[i]; };
        const auto fitted = [=](std::size_t i) { return (n[i] * curve[i] * curve[i] - 2 * curve[i] * hits[i]) + hits[i]; };
        const double total = before_.back();
        found.excesses.push_back(pairwise_sum(as_said, 0, of_.size) / total - pairwise_sum(fitted, 0, of_.size) / total);
    }

  private:
    void count_hits(Pcg64& random) {
        constexpr std::size_t AT_ONCE = 1024;
        std::fill(hits_.begin(), hits_.end(), 0u);
        std::fill(other_hits_.begin(), other_hits_.end(), 0u);
        for (std::size_t first = 0; first < of_.things; first += AT_ONCE) {
            const std::size_t count = std::min(AT_ONCE, of_.things - first);
            double drawn[AT_ONCE];
            for (std::size_t i = 0; i < count; ++i) drawn[i] = random.next();
            const std::uint32_t* places = places_.data() + first;
            for (std::size_t i = 0; i < count; ++i) hits_[places[i]] += drawn[i] < of_things_[first + i];
            if (!of_.others) continue;
            const std::uint32_t* bins = other_bins_.data() + first;
            for (std::size_t i = 0; i < count; ++i) other_hits_[bins[i]] += drawn[i] < of_.others[first + i];
        }
    }

    void fit() {
        std::size_t start = 0, count = 0;
        const auto add = [&](double value, double weight, std::size_t end) {
            values_[count] = value, weights_[count] = weight, ends_[count++] = end;
        };
        for (std::size_t i = 0; i < of_.size; ++i) {
            if (!hits_[i]) continue;
            if (i > start) add(0, before_[i] - before_[start], i);
            add(hits_[i] / of_.n[i], of_.n[i], i + 1);
            start = i + 1;
        }
        if (start < of_.size) add(0, before_[of_.size] - before_[start], of_.size);
        pools_.fit(values_.data(), weights_.data(), count);
        pools_.spread(curve_.data(), ends_.data());
    }

    const Honest of_;
    std::vector<double> of_things_, before_, squares_, curve_, values_, weights_;
    std::vector<std::uint32_t> places_, other_bins_, hits_, other_hits_;
    std::vector<std::size_t> ends_;
    Pools pools_;
};

inline HonestFits honest_fits(const Honest& of, Pcg64 random, std::size_t draws) {
    HonestFits found;
    HonestDraws of_draws(of);
    for (std::size_t draw = 0; draw < draws; ++draw) of_draws.draw(random, found);
    return found;
}

}  // namespace
