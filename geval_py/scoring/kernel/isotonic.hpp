// The fast twin of isotonic in reference.py, with the same sums in the same order.
//
// A part of native.cpp.

// The value of each pool, and the place after its last member.
struct Pools {
    std::vector<double> values, weights;
    std::vector<std::size_t> ends;

    bool violates(double value) const { return !values.empty() && values.back() >= value; }
};

// Pools adjacent violators: first all that follow, then all that precede.
inline std::vector<double> isotonic(const double* values, const double* weights, std::size_t size) {
    Pools pools;
    pools.values.reserve(size), pools.weights.reserve(size), pools.ends.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
        double value = values[i], weight = weights[i];
        if (pools.violates(value)) {
            double sum = pools.weights.back() * pools.values.back() + weight * value;
            weight += pools.weights.back();
            value = sum / weight;
            pools.values.pop_back(), pools.weights.pop_back(), pools.ends.pop_back();
            while (i + 1 < size && value >= values[i + 1]) {
                ++i;
                sum += weights[i] * values[i];
                weight += weights[i];
                value = sum / weight;
            }
            while (pools.violates(value)) {
                sum += pools.weights.back() * pools.values.back();
                weight += pools.weights.back();
                value = sum / weight;
                pools.values.pop_back(), pools.weights.pop_back(), pools.ends.pop_back();
            }
        }
        pools.values.push_back(value), pools.weights.push_back(weight), pools.ends.push_back(i + 1);
    }
    std::vector<double> found;
    found.reserve(size);
    for (std::size_t pool = 0; pool < pools.ends.size(); ++pool) found.resize(pools.ends[pool], pools.values[pool]);
    return found;
}
