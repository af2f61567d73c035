// Question: what does BinaryJoin cost a row beside a plain symmetric hash window join, by window size, and
// what do its punctuations cost when there is nothing for them to do?
// Expected at 2^20 rows a side: no dearer than the plain join with its index a quarter full (rate_vs_plain at
// least 1) or as full as ours (rate_vs_plain_as_full); as dear as itself with punctuations switched off
// (time_vs_wjoin at most 1.05); irrelevant punctuations, one to 30 rows, cost at most 3%: between the rows of
// a push beside the same pushes without any (irrelevant_punct), and, dearer, in calls of their own beside
// pushes of 30 rows (irrelevant_calls).
//
// One axis: rows a window holds. All contestants run on the same streams in one iteration, each in turn,
// round after round; a ratio is the median over the rounds, so that what else the machine does falls on all
// of them. Where a few percent count they take turns batch by batch instead; no_punct, the join beside itself
// without any punctuation, says how far these ratios are to be trusted. Every contestant must find the same
// pairs.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench_join.h"
#include "plain_window_join.h"
#include "stream_generator.h"
#include "streamjoin/join/binary_join.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kBatch = 4096;
constexpr size_t kRounds = 11;
constexpr size_t kRowsPerPunctuation = 30;
constexpr double kFastestSlots = 4;    // index a quarter full, 64 bytes a row, beside a ring of 32 to 64
constexpr double kAsFullSlots = 1.75;  // index as full as that of BinaryJoin

struct Streams {
  TimedKeys sides[2];
  size_t window_rows;
};

struct Run {
  double seconds = 0;  // after the windows are full
  size_t pairs = 0;
};

/// `push(side, begin, size) -> pairs`, in step over both streams.
Run run(const Streams& streams, const std::function<size_t(Side, size_t, size_t)>& push) {
  Run result;
  const size_t rows = streams.sides[0].times.size();
  double start = 0;
  for (size_t begin = 0; begin < rows; begin += kBatch) {
    if (begin <= streams.window_rows) start = cpu_seconds();
    const size_t size = std::min(kBatch, rows - begin);
    for (const Side side : {kLeft, kRight}) result.pairs += push(side, begin, size);
  }
  result.seconds = cpu_seconds() - start;
  return result;
}

Run run_plain(const Streams& streams, double slots_per_row) {
  const Duration window = static_cast<Duration>(streams.window_rows);
  PlainWindowJoin join(window, window, streams.window_rows + 2 * kBatch, slots_per_row);
  PlainWindowJoin::Pairs out;
  return run(streams, [&](Side side, size_t begin, size_t size) {
    out.clear();
    const TimedKeys& stream = streams.sides[side];
    join.push(side, std::span(stream.times).subspan(begin, size), std::span(stream.keys).subspan(begin, size),
              begin, out);
    return out.size();
  });
}

struct JoinRun {
  bool use_punctuations = true;
  size_t rows_per_push = kBatch;
  /// After each so many rows one of a key that no row has: ascending, on both streams.
  size_t rows_per_punctuation = 0;
};

/// A join and how its rows come.
class Contestant {
 public:
  Contestant(const Streams& streams, JoinRun how) : streams_(streams), how_(how) {
    const Duration window = static_cast<Duration>(streams.window_rows);
    BinaryJoinOptions options;
    options.bounds = Bounds(-window, window);
    options.use_punctuations = how.use_punctuations;
    join_ = std::make_unique<BinaryJoin>(options, nullptr);
  }

  /// Pushes a batch of rows; returns the pairs found.
  size_t push(Side side, size_t begin, size_t size) {
    results_.rows.clear();
    results_.punctuations.clear();
    const TimedKeys& stream = streams_.sides[side];
    const bool between_rows = how_.rows_per_punctuation < how_.rows_per_push;
    for (size_t at = begin; at < begin + size; at += how_.rows_per_push) {
      const size_t rows = std::min(how_.rows_per_push, begin + size - at);
      const std::span<const Time> times = std::span(stream.times).subspan(at, rows);
      RowBatch pushed{batch_, times, std::span(stream.keys).subspan(at, rows)};
      if (how_.rows_per_punctuation > 0 && between_rows) {
        punctuations_.clear();
        for (size_t behind = how_.rows_per_punctuation; behind <= rows; behind += how_.rows_per_punctuation)
          punctuations_.push_back({behind, static_cast<Code>(at + behind), times[behind - 1]});
        pushed.punctuations = punctuations_;
      }
      join_->push(side, pushed, nullptr, results_);
      if (how_.rows_per_punctuation > 0 && !between_rows)
        join_->punctuate(side, static_cast<Code>(at), times.back(), results_);
    }
    batch_ = (batch_ + 1) % 1024;
    return results_.rows.size();
  }

 private:
  const Streams& streams_;
  const JoinRun how_;
  std::unique_ptr<BinaryJoin> join_;
  Results results_;
  std::vector<KeyPunctuation> punctuations_;
  uint32_t batch_ = 0;
};

Run run_join(const Streams& streams, const JoinRun& how) {
  Contestant join(streams, how);
  return run(streams, [&](Side side, size_t begin, size_t size) { return join.push(side, begin, size); });
}

/// Joins side by side, batch by batch in turn: a few percent show through what else the machine does.
std::vector<double> run_side_by_side(const Streams& streams, const std::vector<JoinRun>& hows) {
  std::vector<Contestant> joins;
  for (const JoinRun& how : hows) joins.emplace_back(streams, how);
  std::vector<double> seconds(hows.size());
  size_t turn = 0;
  run(streams, [&](Side side, size_t begin, size_t size) {
    size_t pairs = 0;
    for (size_t i = 0; i < joins.size(); ++i) {
      const size_t at = (i + turn) % joins.size();
      const double start = cpu_seconds();
      const size_t found = joins[at].push(side, begin, size);
      if (begin > streams.window_rows) seconds[at] += cpu_seconds() - start;
      if (i > 0) require(found, pairs, "pairs of a batch");
      pairs = found;
    }
    turn += side == kRight;
    return pairs;
  });
  return seconds;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void compare(benchmark::State& state, const Streams& streams) {
  std::vector<double> plain, plain_as_full, pwjoin, wjoin;
  std::vector<double> control, irrelevant, irrelevant_calls;  // ratios
  for (auto _ : state) {
    size_t pairs = 0;
    const auto note = [&](const Run& run, std::vector<double>& seconds) {
      if (pairs != 0) require(run.pairs, pairs, "pairs");
      pairs = run.pairs;
      seconds.push_back(run.seconds);
    };
    for (size_t round = 0; round < kRounds; ++round) {
      note(run_plain(streams, kFastestSlots), plain);
      note(run_plain(streams, kAsFullSlots), plain_as_full);
      note(run_join(streams, {}), pwjoin);
      note(run_join(streams, {.use_punctuations = false}), wjoin);
      if (round % 3 > 0) continue;
      const auto beside = run_side_by_side(
          streams, {{.use_punctuations = false}, {}, {.rows_per_punctuation = kRowsPerPunctuation}});
      control.push_back(beside[1] / beside[0]);
      irrelevant.push_back(beside[2] / beside[0]);
      const auto in_calls = run_side_by_side(
          streams, {{.use_punctuations = false, .rows_per_push = kRowsPerPunctuation},
                    {.rows_per_push = kRowsPerPunctuation, .rows_per_punctuation = kRowsPerPunctuation}});
      irrelevant_calls.push_back(in_calls[1] / in_calls[0]);
    }
  }
  const auto ratio = [](const std::vector<double>& slower, const std::vector<double>& faster) {
    std::vector<double> ratios;
    for (size_t i = 0; i < slower.size(); ++i) ratios.push_back(slower[i] / faster[i]);
    return median(ratios);
  };
  const double rows = 2 * static_cast<double>(streams.sides[0].times.size() - streams.window_rows);
  state.counters["plain_Mrows/s"] = rows / median(plain) / 1e6;
  state.counters["pwjoin_Mrows/s"] = rows / median(pwjoin) / 1e6;
  state.counters["rate_vs_plain"] = ratio(plain, pwjoin);
  state.counters["rate_vs_plain_as_full"] = ratio(plain_as_full, pwjoin);
  state.counters["time_vs_wjoin"] = ratio(pwjoin, wjoin);
  state.counters["no_punct"] = median(control);
  state.counters["irrelevant_punct"] = median(irrelevant);
  state.counters["irrelevant_calls"] = median(irrelevant_calls);
}

size_t rows_for(size_t window_rows) {
  return window_rows + std::max<size_t>(window_rows, size_t{1} << 20);
}

void exactly_one_match(benchmark::State& state) {
  const size_t window_rows = static_cast<size_t>(state.range(0));
  auto [left, right] = paired_unique_keys({.rows = rows_for(window_rows), .window_rows = window_rows});
  compare(state, {{std::move(left), std::move(right)}, window_rows});
}

void uniform(benchmark::State& state, double matches_per_row) {
  const size_t window_rows = static_cast<size_t>(state.range(0));
  UniformKeysOptions options{
      .rows = rows_for(window_rows), .window_rows = window_rows, .matches_per_row = matches_per_row};
  TimedKeys left = uniform_keys(options);
  options.seed = 2;
  compare(state, {{std::move(left), uniform_keys(options)}, window_rows});
}

#define BY_WINDOW_ROWS RangeMultiplier(4)->Range(1 << 12, 1 << 22)->Unit(benchmark::kSecond)->Iterations(1)
BENCHMARK(exactly_one_match)->BY_WINDOW_ROWS;
BENCHMARK_CAPTURE(uniform, one_match, 1.0)->BY_WINDOW_ROWS;
BENCHMARK_CAPTURE(uniform, selective, 0.01)->BY_WINDOW_ROWS;

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
