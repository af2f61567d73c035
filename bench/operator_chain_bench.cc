// What does one hash join of four streams save against a chain of three binary joins on the same key?
//
//   chain   ((A join B) join C) join D       every binary join stores its left input: rows, pairs, triples
//   m-way   (A, B, C, D)                     rows alone
//
// Streams of 1000 rows a second in time order, a window of 1 s, keys so many that a row meets about three
// rows of each other stream. An intermediate result has the time of its newest row and knows that of its
// oldest, so that the chain checks the same window. Expected: at most half of the state rows, at least 1.5
// times the rate. Counts of results must agree.

#include <benchmark/benchmark.h>

#include <array>

#include "m_way_streams.h"

namespace streamjoin::bench {
namespace {

constexpr size_t kStreams = 4;
constexpr Duration kWindow = kSecondUs;

/// A tuple in the chain, or one row of a stream.
struct Part {
  Time oldest;
  Time newest;
  Code key;
  std::array<RowRef, kStreams> rows;
};

/// One binary join of the chain. What its right input adds is one row of a stream.
class Link : public Predicate {
 public:
  explicit Link(size_t stream) : stream_(stream), join_(within(kWindow), nullptr) {}

  /// Appends what `part` makes with the other side.
  void push(Side side, const Part& part, std::vector<Part>& made) {
    std::vector<Part>& mine = parts_[side];
    const RowRef ref{0, static_cast<uint32_t>(mine.size())};
    mine.push_back(part);
    results_.rows.clear();
    join_.push(side, {.number = 0, .times = {&part.newest, 1}, .keys = {&part.key, 1}, .refs = &ref}, this,
               results_);
    for (const ResultRow& result : results_.rows) {
      Part whole = parts_[kLeft][result.left.row];
      const Part& right = parts_[kRight][result.right.row];
      whole.oldest = std::min(whole.oldest, right.oldest);
      whole.newest = std::max(whole.newest, right.newest);
      whole.rows[stream_] = right.rows[stream_];
      made.push_back(whole);
    }
  }
  void evaluate(std::span<const ResultRow> candidates, std::span<uint8_t> holds) override {
    for (size_t i = 0; i < candidates.size(); ++i) {
      const Part& left = parts_[kLeft][candidates[i].left.row];
      const Part& right = parts_[kRight][candidates[i].right.row];
      holds[i] = std::max(left.newest, right.newest) - std::min(left.oldest, right.oldest) <= kWindow;
    }
  }
  size_t state_rows() const { return join_.state(kLeft).live_rows() + join_.state(kRight).live_rows(); }

 private:
  size_t stream_;
  BinaryJoin join_;
  std::array<std::vector<Part>, 2> parts_;
  Results results_;
};

class Chain {
 public:
  size_t push(std::span<const TimedRow> rows) {
    size_t results = 0;
    for (const TimedRow& row : rows) {
      Part part{row.time, row.time, row.key, {}};
      part.rows[row.stream] = {row.row, 0};
      std::vector<Part> made;
      const size_t first = row.stream == 0 ? 0 : row.stream - 1;
      links_[first].push(row.stream == 0 ? kLeft : kRight, part, made);
      for (size_t link = first + 1; link < links_.size(); ++link) {
        std::vector<Part> next;
        for (const Part& each : made) links_[link].push(kLeft, each, next);
        made = std::move(next);
      }
      results += made.size();
    }
    return results;
  }
  size_t state_rows() const {
    return links_[0].state_rows() + links_[1].state_rows() + links_[2].state_rows();
  }

 private:
  std::array<Link, kStreams - 1> links_{Link(1), Link(2), Link(3)};
};

void four_streams(benchmark::State& state) {
  const auto rows = in_slices(
      make_streams(
          {.rates = std::vector<double>(kStreams, 1000), .rows_each = 5000, .seconds = 0, .keys = 333}),
      1);
  Samples rate, share;
  for (auto _ : state) {
    OperatorRun m_way(MultiAlgorithm::kHash, {one_window(kStreams, kWindow)});
    Chain chain;
    const RunTimes of_chain = run_rows(chain, rows);
    const RunTimes of_m_way = run_rows(m_way, rows);
    require(of_m_way.results, of_chain.results, "results of the chain");
    size_t held = 0;
    for (size_t stream = 0; stream < kStreams; ++stream) held += m_way.join().state(stream).live_rows();
    rate.add(of_chain.seconds() / of_m_way.seconds());
    share.add(static_cast<double>(held) / static_cast<double>(chain.state_rows()));
    state.SetIterationTime(of_m_way.seconds());
  }
  state.counters["rate_vs_chain"] = rate.median();
  state.counters["state_rows_vs_chain"] = share.median();
}
BENCHMARK(four_streams)->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace streamjoin::bench

BENCHMARK_MAIN();
