// Question: does a heartbeat cost what it removes, whatever else is stored?
// Expected: a fixed time per removed row (tens of nanoseconds: each takes its key out of a table that fits no
// cache), so removing 100 of a million rows takes about a thousandth, and surely less than a hundredth, of
// the time of removing 100,000 (`percent_of_100k`). Removing nothing takes a few nanoseconds a call.
//
// One axis: rows that one heartbeat of the other stream expires, of 2^20 stored rows with a key each.
// Deletion is lazy, so cost could hide behind the call. Hence the time of an iteration is that of the
// heartbeat and of freeing all that it left behind; and the 1,000 rows that come next are timed as well:
// `next_rows_vs_idle` compares them with as many rows after a heartbeat that removed nothing. Up to half of
// them name keys that are gone and find nothing, so a little below 1 is no surprise; far above 1 would be.

#include <benchmark/benchmark.h>

#include "bench_join.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kStored = size_t{1} << 20;
constexpr size_t kNext = 1000;
constexpr size_t kIdleCalls = 1000;
constexpr Duration kSpacing = 4096;  // between rows, so that many heartbeats fit where no row expires
constexpr Duration kWindow = static_cast<Duration>(2 * kStored) * kSpacing;
constexpr size_t kReference = 100'000;

const TimedKeys& stored_rows() {
  static const TimedKeys stream = [] {
    TimedKeys rows = one_row_per_unit(kStored, [](size_t row) { return row; });
    for (int64_t& time : rows.times) time *= kSpacing;
    return rows;
  }();
  return stream;
}

struct Cost {
  double heartbeat = 0;  // one call
  double freeing = 0;
  double next_rows = 0;
};

/// Rows of the other stream with the keys of rows around the border: the `gone` last removed, then live ones.
double time_next_rows(BinaryJoin& join, size_t removed, Time time) {
  const size_t gone = std::min(removed, kNext / 2);
  TimedKeys next;
  for (size_t row = removed - gone; row < removed - gone + kNext; ++row) {
    next.times.push_back(time);
    next.keys.push_back(stored_rows().keys[row]);
  }
  Results results;
  const double seconds = seconds_of([&] { push(join, kRight, next, 0, kNext, results); });
  require(results.rows.size(), kNext - gone, "matches of the rows after the heartbeat");
  return seconds;
}

Cost expire(size_t removed) {
  BinaryJoin join(within(kWindow), nullptr);
  Results results;
  push(join, kLeft, stored_rows(), 0, kStored, results);
  require(join.state(kLeft).live_rows(), kStored, "rows stored");

  Cost cost;
  // Rows 0 to removed - 1 have times up to removed * kSpacing; one more unit and they are out of reach.
  const Time clock = kWindow + static_cast<Duration>(removed) * kSpacing + 1;
  if (removed == 0) {  // too short for one call to be seen
    const double seconds = seconds_of([&] {
      for (size_t call = 0; call < kIdleCalls; ++call)
        join.advance(kRight, clock + static_cast<Time>(call), results);
    });
    cost.heartbeat = seconds / kIdleCalls;
  } else {
    cost.heartbeat = seconds_of([&] { join.advance(kRight, clock, results); });
  }
  cost.next_rows = time_next_rows(join, removed, clock + kIdleCalls);
  cost.freeing = seconds_of([&] { join.state(kLeft).sweep_all(); });

  require(join.counters(kLeft).invalidated, removed, "rows invalidated");
  require(join.state(kLeft).live_rows(), kStored - removed, "rows left");
  require(join.state(kLeft).dead_rows(), 0, "dead rows left");
  require(join.state(kLeft).lists().size(), kStored - removed, "keys left");
  return cost;
}

void heartbeat_removes(benchmark::State& state) {
  const size_t removed = static_cast<size_t>(state.range(0));
  Samples heartbeats, freeings, totals, references, next_rows, idle_next_rows;
  for (auto _ : state) {
    const Cost cost = expire(removed);
    const Cost reference = expire(kReference);
    heartbeats.add(cost.heartbeat);
    freeings.add(cost.freeing);
    totals.add(cost.heartbeat + (removed == 0 ? 0 : cost.freeing));
    references.add(reference.heartbeat + reference.freeing);
    next_rows.add(cost.next_rows);
    idle_next_rows.add(expire(0).next_rows);
    state.SetIterationTime(cost.heartbeat + (removed == 0 ? 0 : cost.freeing));
  }
  state.counters["heartbeat_us"] = 1e6 * heartbeats.median();
  state.counters["freeing_us"] = 1e6 * freeings.median();
  if (removed > 0) state.counters["ns_per_row"] = 1e9 * totals.median() / static_cast<double>(removed);
  state.counters["percent_of_100k"] = 100 * totals.median() / references.median();
  state.counters["next_rows_vs_idle"] = next_rows.median() / idle_next_rows.median();
}

BENCHMARK(heartbeat_removes)
    ->Arg(0)
    ->Arg(100)
    ->Arg(100'000)
    ->Arg(900'000)
    ->Iterations(7)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
