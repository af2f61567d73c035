// What the benchmarks of the join share: a join that holds rows, a clock, and a judge.
//
//   cpu_seconds      of this thread: what else the machine does meanwhile does not count
//   Samples          one duration per iteration; its median is what ratios are made of, so one disturbed
//                    iteration moves nothing
//   require          ends the program when an answer is wrong: a rate of wrong answers is no rate
//
// Ratios are always between two measurements of the same iteration, so a machine that is slow today is slow
// in both.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "stream_generator.h"
#include "streamjoin/join/binary_join.h"

namespace streamjoin::bench {

inline double cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <typename Work>
double seconds_of(Work&& work) {
  const double start = cpu_seconds();
  work();
  return cpu_seconds() - start;
}

class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  double last() const { return values_.back(); }
  double median() const {
    std::vector<double> sorted = values_;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }

 private:
  std::vector<double> values_;
};

inline void require(size_t found, size_t expected, const char* what) {
  if (found == expected) return;
  std::fprintf(stderr, "wrong answer: %s: found %zu, expected %zu\n", what, found, expected);
  std::exit(1);
}

inline void require_valid(const BinaryJoin& join) {
  const std::string broken = join.validate();
  if (broken.empty()) return;
  std::fprintf(stderr, "broken state: %s\n", broken.c_str());
  std::exit(1);
}

/// An inner join of rows at most `window` apart, in either direction.
inline BinaryJoinOptions within(Duration window) {
  BinaryJoinOptions options;
  options.bounds = Bounds(-window, window);
  return options;
}

/// An inner join of all rows of equal key: only punctuations end a row's life.
inline BinaryJoinOptions unbounded() {
  return {};
}

/// Numbers 0 to count - 1, shuffled within stretches; the same for the same arguments on every machine.
inline std::vector<size_t> shuffled_numbers(size_t count, size_t stretch) {
  std::mt19937_64 random(1);
  std::vector<size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  for (size_t begin = 0; begin < count; begin += stretch) {
    const size_t end = std::min(count, begin + stretch);
    for (size_t at = begin; at < end; ++at) std::swap(numbers[at], numbers[at + slot_of(random(), end - at)]);
  }
  return numbers;
}

/// Pushes rows begin to end - 1 of a stream as one batch, and forgets nothing of the results.
inline void push(BinaryJoin& join, Side side, const TimedKeys& stream, size_t begin, size_t end,
                 Results& results, uint32_t batch = 0) {
  join.push(side,
            {.number = batch,
             .times = std::span(stream.times).subspan(begin, end - begin),
             .keys = std::span(stream.keys).subspan(begin, end - begin)},
            nullptr, results);
}

}  // namespace streamjoin::bench
