// Question: what do string keys cost, compared with integers?
// Expected: an integer is its own code, a string is looked up in a dictionary first: bytes to copy, to hash
// and to compare, and one or two cache misses more a row. About two to four times the time a row, more for
// longer strings. The ratio is `vs_integers`, of the same rows in the same iteration.
//
// One axis: bytes of a key, 8, 20, 64. Both streams go through BinaryOperator in batches of 4,096 rows, every
// key once in each stream, windows of 2^16 rows that are full before the clock starts. Strings of a length
// begin alike and differ in their last 8 bytes, as names and addresses do.

#include <benchmark/benchmark.h>

#include <string>

#include "bench_join.h"
#include "streamjoin/engine/binary_operator.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kWindowRows = size_t{1} << 16;
constexpr size_t kRows = size_t{1} << 19;
constexpr size_t kBatch = 4096;

struct StringColumn {
  std::string bytes;
  std::vector<int64_t> offsets{0};
};

/// Each key as text: a common beginning, then its upper 48 bits. Those of the generator's keys all differ.
StringColumn as_text(const std::vector<int64_t>& keys, size_t length) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  StringColumn column;
  for (const int64_t key : keys) {
    column.bytes.append(length - 8, '/');
    for (int digit = 0; digit < 8; ++digit) {
      column.bytes += kDigits[static_cast<uint64_t>(key) >> (58 - 6 * digit) & 63];
    }
    column.offsets.push_back(static_cast<int64_t>(column.bytes.size()));
  }
  return column;
}

/// Seconds of the rows behind the first window. `column` gives the key column of the batch that begins at a
/// row.
template <typename Column>
double slide(AttributeKind kind, const std::array<const TimedKeys*, 2>& streams, Column column) {
  OperatorOptions options;
  options.join.bounds = Bounds(-static_cast<Duration>(kWindowRows), static_cast<Duration>(kWindowRows));
  options.join.codes_are_values = kind == AttributeKind::kInteger;
  options.key_types = {AttributeType{.kind = kind}};
  options.null_safe = {false};
  BinaryOperator join(options);
  size_t pairs = 0;
  double start = 0;
  for (size_t begin = 0; begin < kRows; begin += kBatch) {
    if (begin == kWindowRows) start = cpu_seconds();
    for (const Side side : {kLeft, kRight}) {
      const KeyColumn keys = column(side, begin);
      const Output output =
          join.push(side, static_cast<uint32_t>(begin / kBatch),
                    std::span(streams[side]->times).subspan(begin, kBatch), {&keys, 1}, nullptr);
      pairs += output.rows.size();
      join.take_empty_batches(side);
    }
  }
  const double seconds = cpu_seconds() - start;
  require(pairs, kRows, "pairs of two streams in which each key comes once");
  return seconds;
}

void string_keys(benchmark::State& state) {
  const size_t length = static_cast<size_t>(state.range(0));
  const auto [left, right] = paired_unique_keys({.rows = kRows, .window_rows = kWindowRows});
  const std::array<const TimedKeys*, 2> streams{&left, &right};
  const std::array<StringColumn, 2> texts{as_text(left.keys, length), as_text(right.keys, length)};
  Samples strings, integers;
  for (auto _ : state) {
    strings.add(slide(AttributeKind::kBytes, streams, [&](Side side, size_t begin) {
      return KeyColumn{.type = {.kind = AttributeKind::kBytes},
                       .values = texts[side].bytes.data(),
                       .offsets = texts[side].offsets.data() + begin};
    }));
    integers.add(slide(AttributeKind::kInteger, streams, [&](Side side, size_t begin) {
      return KeyColumn{.type = {.kind = AttributeKind::kInteger},
                       .values = streams[side]->keys.data() + begin};
    }));
    state.SetIterationTime(strings.last());
  }
  const double rows = 2.0 * static_cast<double>(kRows - kWindowRows);
  state.counters["ns_per_row"] = 1e9 * strings.median() / rows;
  state.counters["ns_per_row_of_integers"] = 1e9 * integers.median() / rows;
  state.counters["vs_integers"] = strings.median() / integers.median();
}

BENCHMARK(string_keys)
    ->Arg(8)
    ->Arg(20)
    ->Arg(64)
    ->Iterations(5)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
