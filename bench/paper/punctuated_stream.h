// Streams of the PWJoin experiments, by the notations of its section 6.1.
//
//   cluster-[order]-[size]          all rows of a segment have the value that its punctuation ends
//   punct-[order]-[size]-[match]    `match` percent of them do; the others have values that end later
//
//   segment 0                            segment 1
//   7 0 3 0 9 0  punctuation on 0   |    1 8 1 4 1  punctuation on 1   |  ...            punct-asc-6-50
//
// Sizes, shares and the milliseconds between rows are Poisson with the given means. A punctuation stands at
// the time of the last row of its value. One value a segment: a stream of n segments has the values 0 to n -
// 1, and two streams of as many segments share them. The same seed gives the same stream on every machine
// with one standard library.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "streamjoin/base/code.h"
#include "streamjoin/base/time.h"

namespace streamjoin::bench {

enum class ValueOrder : uint8_t { kAscending, kDescending, kRandom };

struct ArrivalPattern {
  ValueOrder order = ValueOrder::kAscending;
  double segment_size = 100;
  double match_percentage = 100;  // a cluster is a segment of nothing but matches
  bool punctuated = true;         // otherwise values are drawn evenly and never end
  size_t unended_values = 0;      // from how many values they are drawn then; 0: as many as segments
  bool irrelevant = false;        // punctuations speak of values that no row has
};

inline constexpr Duration kMillisecond = 1000;
inline constexpr Duration kSecond = 1000 * kMillisecond;
inline constexpr double kMillisecondsBetweenRows = 10;

struct StreamEvent {
  Time time;
  Code value;
  bool is_punctuation;
};

/// The pattern of a name such as "punct-asc-100-40" or "cluster-random-30"; any other name ends the program.
inline ArrivalPattern arrival_pattern(const std::string& name) {
  char order[8];
  ArrivalPattern pattern;
  const bool punct = std::sscanf(name.c_str(), "punct-%7[a-z]-%lf-%lf", order, &pattern.segment_size,
                                 &pattern.match_percentage) == 3;
  const bool known =
      punct || std::sscanf(name.c_str(), "cluster-%7[a-z]-%lf", order, &pattern.segment_size) == 2;
  const std::string word = known ? order : "";
  if (word == "desc") pattern.order = ValueOrder::kDescending;
  if (word == "random") pattern.order = ValueOrder::kRandom;
  if (word == "asc" || pattern.order != ValueOrder::kAscending) return pattern;
  std::fprintf(stderr,
               "expected cluster-ORDER-SIZE or punct-ORDER-SIZE-MATCH, ORDER asc, desc or random; got %s\n",
               name.c_str());
  std::exit(2);
}

/// `segments` punctuated segments in time order.
inline std::vector<StreamEvent> punctuated_stream(const ArrivalPattern& pattern, size_t segments,
                                                  uint64_t seed) {
  std::mt19937_64 random(seed);
  std::poisson_distribution<int64_t> pause(kMillisecondsBetweenRows);
  std::poisson_distribution<size_t> size_of_segment(pattern.segment_size);
  std::poisson_distribution<size_t> percentage(pattern.match_percentage);

  std::vector<Code> values(segments);
  std::iota(values.begin(), values.end(), Code{0});
  if (pattern.order == ValueOrder::kDescending) std::reverse(values.begin(), values.end());
  if (pattern.order == ValueOrder::kRandom) std::shuffle(values.begin(), values.end(), random);

  std::vector<StreamEvent> events;
  Time now = 0;
  for (size_t segment = 0; segment < segments; ++segment) {
    const size_t rows = std::max<size_t>(1, size_of_segment(random));
    const bool all = pattern.match_percentage >= 100;
    const double share = all ? 1 : std::min(1.0, static_cast<double>(percentage(random)) / 100);
    std::vector<bool> matches(rows, false);
    std::fill_n(matches.begin(), static_cast<size_t>(std::llround(share * static_cast<double>(rows))), true);
    std::shuffle(matches.begin(), matches.end(), random);
    matches.back() = true;  // the punctuation follows the last row of its value
    for (size_t row = 0; row < rows; ++row) {
      now += pause(random) * kMillisecond;
      size_t chosen = segment;
      if (!pattern.punctuated) {
        const size_t many = pattern.unended_values == 0 ? segments : pattern.unended_values;
        events.push_back(
            {now, static_cast<Code>(std::uniform_int_distribution<size_t>(0, many - 1)(random)), false});
        continue;
      }
      if (!matches[row] && segment + 1 < segments) {
        chosen = std::uniform_int_distribution<size_t>(segment + 1, segments - 1)(random);
      }
      events.push_back({now, values[chosen], false});
    }
    if (!pattern.punctuated) continue;
    const Code ended = pattern.irrelevant ? -1 - values[segment] : values[segment];
    events.push_back({now, ended, true});
  }
  return events;
}

}  // namespace streamjoin::bench
