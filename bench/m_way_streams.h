// Streams and runs for the questions about joins of m streams, as in the W-join paper: exponential gaps, keys
// from a small set, and the service time of a row.
//
//   in_turns   a row of each stream in turn, whatever its time: a slow stream runs ahead of the others, and
//              states hold rows that no window reaches yet (the paper reads its streams so)
//   in_slices  what each stream has of a stretch of time, stream by stream: small batches as they come
//
// A join is anything with `size_t push(std::span<const TimedRow>)` for rows of one stream, which returns how
// many results they completed. Every run counts them, so that joins judge each other.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "bench_join.h"
#include "streamjoin/join/multi_join.h"

namespace streamjoin::bench {

inline constexpr Duration kSecondUs = 1'000'000;

struct TimedRow {
  size_t stream;
  uint32_t row;  // its number in the stream
  Time time;
  Code key;
};

struct StreamsOptions {
  std::vector<double> rates;  // rows a second
  size_t rows_each = 0;       // of every stream; or
  double seconds = 0;         // the length of every stream
  uint64_t keys = 10;
  uint64_t seed = 7;
};

/// Every stream by itself, in time order; the same on every machine.
inline std::vector<std::vector<TimedRow>> make_streams(const StreamsOptions& options) {
  std::vector<std::vector<TimedRow>> streams(options.rates.size());
  std::mt19937_64 random(options.seed);
  for (size_t stream = 0; stream < streams.size(); ++stream) {
    double now = 0;
    for (uint32_t row = 0;; ++row) {
      const double even = (static_cast<double>(random() >> 11) + 1) * 0x1.0p-53;
      now += -std::log(even) / options.rates[stream] * kSecondUs;
      if (options.rows_each > 0 ? row >= options.rows_each : now >= options.seconds * kSecondUs) break;
      streams[stream].push_back(
          {stream, row, static_cast<Time>(now), static_cast<Code>(slot_of(random(), options.keys))});
    }
  }
  return streams;
}

inline std::vector<TimedRow> in_turns(const std::vector<std::vector<TimedRow>>& streams) {
  std::vector<TimedRow> rows;
  size_t longest = 0;
  for (const auto& stream : streams) longest = std::max(longest, stream.size());
  for (size_t row = 0; row < longest; ++row) {
    for (const auto& stream : streams) {
      if (row < stream.size()) rows.push_back(stream[row]);
    }
  }
  return rows;
}

inline std::vector<TimedRow> in_slices(const std::vector<std::vector<TimedRow>>& streams, Duration slice) {
  std::vector<TimedRow> rows;
  std::vector<size_t> at(streams.size());
  for (Time until = slice;; until += slice) {
    bool more = false;
    for (size_t stream = 0; stream < streams.size(); ++stream) {
      for (; at[stream] < streams[stream].size() && streams[stream][at[stream]].time < until; ++at[stream])
        rows.push_back(streams[stream][at[stream]]);
      more |= at[stream] < streams[stream].size();
    }
    if (!more) return rows;
  }
}

using UpperBounds = std::vector<std::vector<std::optional<Duration>>>;

/// One window for all pairs.
inline UpperBounds one_window(size_t streams, Duration window) {
  UpperBounds uppers(streams, std::vector<std::optional<Duration>>(streams, window));
  for (size_t stream = 0; stream < streams; ++stream) uppers[stream][stream] = 0;
  return uppers;
}

/// Rows as the columns that a join takes.
struct RowColumns {
  std::vector<Time> times;
  std::vector<Code> keys;

  void take(std::span<const TimedRow> rows) {
    times.clear();
    keys.clear();
    for (const TimedRow& row : rows) {
      times.push_back(row.time);
      keys.push_back(row.key);
    }
  }
};

/// MultiJoin. Keys are compared (nested loop, merge) or looked up (hash); or they are values, and those of
/// streams that follow each other may differ by `band`: a condition that no index serves.
class OperatorRun {
 public:
  OperatorRun(MultiAlgorithm algorithm, std::vector<UpperBounds> alternatives,
              std::optional<int64_t> band = std::nullopt)
      : by_band_(band.has_value()), join_(options(algorithm, std::move(alternatives), band), {nullptr}) {}

  size_t push(std::span<const TimedRow> rows) {
    columns_.take(rows);
    batch_.number = rows[0].row;
    batch_.times = columns_.times;
    if (by_band_) {
      batch_.values.assign(1, NumericColumn{.integers = columns_.keys.data()});
    } else {
      batch_.keys.assign(1, columns_.keys);
    }
    results_.rows.clear();
    join_.push(rows[0].stream, batch_, results_);
    return results_.rows.size() / join_.streams();
  }
  const MultiJoin& join() const { return join_; }

 private:
  static MultiJoinOptions options(MultiAlgorithm algorithm, std::vector<UpperBounds> alternatives,
                                  std::optional<int64_t> band) {
    MultiJoinOptions options;
    const size_t streams = alternatives[0].size();
    options.algorithm = algorithm;
    options.classes.assign(streams, band ? std::vector<size_t>{} : std::vector<size_t>{0});
    options.value_slots.assign(streams, band ? 1 : 0);
    for (size_t stream = 1; band && stream < streams; ++stream) {
      options.conjuncts.push_back(
          {{stream - 1, stream}, make_band({stream - 1, 0}, {stream, 0}, NumericValue::of_integer(*band))});
    }
    options.alternatives = std::move(alternatives);
    return options;
  }

  const bool by_band_;
  MultiJoin join_;
  RowColumns columns_;
  StreamBatch batch_{};
  MultiResults results_;
};

/// BinaryJoin, which hash is of two streams.
class BinaryRun {
 public:
  explicit BinaryRun(Duration window) : join_(within(window), nullptr) {}

  size_t push(std::span<const TimedRow> rows) {
    columns_.take(rows);
    results_.rows.clear();
    const Side side = rows[0].stream == 0 ? kLeft : kRight;
    join_.push(side, {.number = rows[0].row, .times = columns_.times, .keys = columns_.keys}, nullptr,
               results_);
    return results_.rows.size();
  }

 private:
  BinaryJoin join_;
  RowColumns columns_;
  Results results_;
};

/// What a run took: processor seconds of each stretch of rows, and the results of all.
struct RunTimes {
  std::vector<double> stretches;
  size_t rows = 0;
  size_t results = 0;

  double seconds() const { return std::accumulate(stretches.begin(), stretches.end(), 0.0); }
  double rows_per_second() const { return static_cast<double>(rows) / seconds(); }
  double service_us() const { return 1e6 / rows_per_second(); }
  /// Service time of the last quarter of the stretches beside that of the second.
  double growth() const {
    const auto of_quarter = [&](size_t quarter) {
      const size_t from = stretches.size() * quarter / 4;
      const size_t to = stretches.size() * (quarter + 1) / 4;
      double sum = 0;
      for (size_t i = from; i < to; ++i) sum += stretches[i];
      return sum / static_cast<double>(std::max<size_t>(1, to - from));
    };
    return of_quarter(3) / of_quarter(1);
  }
};

/// Neighbours of one stream go in together.
template <typename Join>
RunTimes run_rows(Join&& join, std::span<const TimedRow> rows, size_t stretch = 1000) {
  RunTimes times;
  times.rows = rows.size();
  for (size_t begin = 0; begin < rows.size(); begin += stretch) {
    const size_t end = std::min(rows.size(), begin + stretch);
    times.stretches.push_back(seconds_of([&] {
      for (size_t from = begin; from < end;) {
        size_t to = from + 1;
        while (to < end && rows[to].stream == rows[from].stream) ++to;
        times.results += join.push(rows.subspan(from, to - from));
        from = to;
      }
    }));
  }
  return times;
}

/// A hash join of one key and one window as `Operator` runs it.
inline RunTimes run_hash(size_t streams, Duration window, std::span<const TimedRow> rows) {
  if (streams == 2) return run_rows(BinaryRun(window), rows);
  return run_rows(OperatorRun(MultiAlgorithm::kHash, {one_window(streams, window)}), rows);
}

}  // namespace streamjoin::bench
