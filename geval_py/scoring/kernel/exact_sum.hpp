// The fast twin of exact_sum in reference.py: the sum without rounding, rounded once.
//
// J. Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric predicates", Discrete &
// Computational Geometry 18, 1997.

#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace {

// Numbers without common bits, the least first, whose sum is that of all numbers added; none of them is 0.
class Expansion {
  public:
    void add(double number) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            double other = parts_[i];
            if (std::fabs(number) < std::fabs(other)) std::swap(number, other);
            double sum = number + other, lost = other - (sum - number);
            if (lost != 0) parts_[kept++] = lost;
            number = sum;
        }
        if (!std::isfinite(number) || kept == parts_.size()) finite_ = false, kept = 0;
        size_ = kept;
        if (number != 0) parts_[size_++] = number;
    }

    bool is_finite() const { return finite_; }

    double rounded() const {
        std::size_t i = size_;
        if (!i) return 0.0;
        double sum = parts_[--i], lost = 0.0;
        while (i && lost == 0) {
            const double before = sum, next = parts_[--i];
            sum = before + next;
            lost = next - (sum - before);
        }
        // Half of the last place was lost: what is left decides, and not which neighbour is even.
        if (lost != 0 && i && (lost < 0) == (parts_[i - 1] < 0)) {
            const double up = sum + 2 * lost;
            if (up - sum == 2 * lost) sum = up;
        }
        return sum;
    }

  private:
    std::array<double, 64> parts_{};  // 2,098 bits at most, of which each holds 53
    std::size_t size_ = 0;
    bool finite_ = true;
};

}  // namespace
