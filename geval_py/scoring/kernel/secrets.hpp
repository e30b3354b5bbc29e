// Two odd numbers, different in each process: nobody can choose texts that collide in a table.

#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <random>

namespace {

struct Secrets {
    std::uint64_t first, hash;
};

Secrets make_secrets() {
    std::uint64_t seed = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    try {
        std::random_device random;
        seed ^= static_cast<std::uint64_t>(random()) << 32 | random();
    } catch (const std::exception&) {
        // Without a source of random numbers, use the time.
    }
    std::mt19937_64 generator(seed);
    return {generator() | 1, generator() | 1};
}

const Secrets SECRETS = make_secrets();

}  // namespace
