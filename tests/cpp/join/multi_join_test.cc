#include "streamjoin/join/multi_join.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "join/multi_join_oracle.h"

namespace streamjoin::testing {
namespace {

constexpr MultiAlgorithm kAlgorithms[] = {MultiAlgorithm::kHash, MultiAlgorithm::kMergeGca,
                                          MultiAlgorithm::kMergeLca, MultiAlgorithm::kNestedLoop,
                                          MultiAlgorithm::kNestedLoopPipeline};

/// One join beside the oracle: names rows by id, however batches and snapshots renumber them.
class Runner {
 public:
  Runner(MultiJoinOptions options, MultiAlgorithm algorithm, size_t classes)
      : options_(std::move(options)), dictionaries_(classes, nullptr) {
    options_.algorithm = algorithm;
    join_ = std::make_unique<MultiJoin>(options_, dictionaries_);
    ids_.resize(options_.classes.size());
  }

  std::vector<std::vector<uint32_t>> push(size_t stream, std::span<const OracleRow> rows) {
    const size_t streams = options_.classes.size();
    std::vector<Time> times;
    std::vector<std::vector<Code>> keys(options_.classes[stream].size());
    std::vector<int64_t> values;
    std::vector<uint8_t> valid;
    std::vector<uint8_t> unmatchable;
    ++batch_;
    for (const OracleRow& row : rows) {
      ids_[stream][{batch_, static_cast<uint32_t>(times.size())}] = row.id;
      times.push_back(row.time);
      for (size_t p = 0; p < keys.size(); ++p) keys[p].push_back(row.keys[p]);
      values.push_back(row.value.is_null() ? 0 : row.value.integer());
      valid.push_back(!row.value.is_null());
      unmatchable.push_back(row.unmatchable);
    }
    StreamBatch batch{batch_, times, {}, unmatchable.data(), {{values.data(), nullptr, valid.data()}}};
    for (const auto& column : keys) batch.keys.push_back(column);
    MultiResults results;
    join_->push(stream, batch, results);
    std::vector<std::vector<uint32_t>> found;
    for (size_t at = 0; at < results.rows.size(); at += streams) {
      auto& result = found.emplace_back();
      for (size_t s = 0; s < streams; ++s) {
        result.push_back(ids_[s].at({results.rows[at + s].batch, results.rows[at + s].row}));
      }
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  /// Saves, loads into a new join, and goes on with that.
  void reload() {
    for (size_t s = 0; s < ids_.size(); ++s) {
      std::map<std::pair<uint32_t, uint32_t>, uint32_t> moved;
      uint32_t at = 0;
      for (const RowRef row : join_->move_rows_to(s, 0)) moved[{0, at++}] = ids_[s].at({row.batch, row.row});
      ids_[s] = std::move(moved);
    }
    ArchiveWriter out;
    join_->save(out);
    const std::string bytes = out.take();
    join_ = std::make_unique<MultiJoin>(options_, dictionaries_);
    ArchiveReader in(bytes);
    join_->load(in);
    EXPECT_TRUE(in.at_end());
    ArchiveWriter again;
    join_->save(again);
    EXPECT_EQ(again.take(), bytes);
  }

  MultiJoin& join() { return *join_; }
  bool merges() const {
    return options_.algorithm == MultiAlgorithm::kMergeGca || options_.algorithm == MultiAlgorithm::kMergeLca;
  }

 private:
  MultiJoinOptions options_;
  std::vector<KeyDictionary*> dictionaries_;
  std::unique_ptr<MultiJoin> join_;
  uint32_t batch_ = 0;
  std::vector<std::map<std::pair<uint32_t, uint32_t>, uint32_t>> ids_;
};

struct RandomCase {
  MultiJoinOptions options;
  std::vector<PlainConjunct> conjuncts;
  size_t classes;
};

RandomCase random_case(std::mt19937& random) {
  RandomCase made;
  const size_t streams = static_cast<size_t>(between(random, 2, 5));
  made.classes = static_cast<size_t>(between(random, 0, 3));
  for (int k = between(random, 0, 3) == 0 ? 2 : 1; k > 0; --k) {
    made.options.alternatives.push_back(random_matrix(random, streams));
  }
  made.options.late = between(random, 0, 1) == 0 ? LatePolicy::kDrop : LatePolicy::kInsert;
  for (size_t s = 0; s < streams; ++s) {
    auto& classes = made.options.classes.emplace_back();
    for (size_t c = 0; c < made.classes; ++c) {
      if (between(random, 0, 3) > 0) classes.push_back(c);
    }
    std::shuffle(classes.begin(), classes.end(), random);
    made.options.value_slots.push_back(1);
  }
  for (int n = between(random, 0, 2); n > 0; --n) {
    const auto a = static_cast<size_t>(between(random, 0, static_cast<int>(streams) - 1));
    const auto b = static_cast<size_t>(between(random, 0, static_cast<int>(streams) - 1));
    const PlainConjunct plain{a, b, between(random, 0, 2)};
    std::shared_ptr<TuplePredicate> native;
    if (plain.form == 0) native = make_band({a, 0}, {b, 0}, NumericValue::of_integer(1));
    if (plain.form == 1)
      native = make_compare({a, 0}, Comparison::kLess, {b, 0}, NumericValue::of_integer(1));
    if (plain.form == 2) native = std::make_shared<OddDifference>(a, b, streams);
    made.options.conjuncts.push_back({{a, b}, native});
    made.conjuncts.push_back(plain);
  }
  return made;
}

void run_seed(uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const RandomCase made = random_case(random);
  const size_t streams = made.options.classes.size();
  MultiOracle oracle(made.options, made.conjuncts);
  std::vector<std::unique_ptr<Runner>> runners;
  for (const MultiAlgorithm algorithm : kAlgorithms) {
    runners.push_back(std::make_unique<Runner>(made.options, algorithm, made.classes));
  }
  const bool has_silent_stream = between(random, 0, 5) == 0;
  const int domain = between(random, 1, 3);
  std::vector<Time> now(streams, between(random, -5, 5));
  std::vector<uint8_t> ended(streams);
  uint32_t id = 0;
  const int calls = between(random, 4, streams > 3 ? 14 : 24);
  for (int call = 0; call < calls; ++call) {
    const auto stream =
        static_cast<size_t>(between(random, has_silent_stream ? 1 : 0, static_cast<int>(streams) - 1));
    const int what = between(random, 0, 19);
    if (what == 0) {
      now[stream] += between(random, 0, 4);
      oracle.advance(stream, now[stream] + 1);
      MultiResults results;
      for (auto& runner : runners) runner->join().advance(stream, now[stream] + 1, results);
    } else if (what == 1) {
      for (auto& runner : runners) runner->reload();
    } else if (what == 2 && between(random, 0, 3) == 0) {
      ended[stream] = 1;
      oracle.advance(stream, kEnd);
      MultiResults results;
      for (auto& runner : runners) runner->join().end(stream, now[stream], results);
    } else if (!ended[stream]) {
      std::vector<OracleRow> rows;
      for (int n = between(random, 0, 6); n > 0; --n) {
        now[stream] += between(random, 0, 3) == 0 ? between(random, 1, 4) : 0;
        const bool back = between(random, 0, 9) == 0;
        OracleRow row{back ? now[stream] - between(random, 1, 6) : now[stream],
                      {},
                      NumericValue::null(),
                      between(random, 0, 14) == 0,
                      id++};
        for (size_t p = 0; p < made.options.classes[stream].size(); ++p) {
          row.keys.push_back(between(random, 1, domain));
        }
        if (between(random, 0, 9) > 0) row.value = NumericValue::of_integer(between(random, 0, 4));
        rows.push_back(row);
      }
      std::vector<std::vector<uint32_t>> expected;
      for (const OracleRow& row : rows) {
        for (auto& result : oracle.push(stream, row)) expected.push_back(std::move(result));
      }
      std::sort(expected.begin(), expected.end());
      const bool row_by_row = between(random, 0, 1) == 0;
      for (size_t i = 0; i < runners.size(); ++i) {
        std::vector<std::vector<uint32_t>> found;
        if (row_by_row && i % 2 == 0) {
          for (const OracleRow& row : rows) {
            for (auto& result : runners[i]->push(stream, {&row, 1})) found.push_back(std::move(result));
          }
          std::sort(found.begin(), found.end());
        } else {
          found = runners[i]->push(stream, rows);
        }
        ASSERT_EQ(found, expected) << "algorithm " << i << ", call " << call;
      }
    }
    const bool output_may_have_ended = std::ranges::any_of(ended, [](uint8_t each) { return each != 0; });
    for (auto& runner : runners) {
      ASSERT_EQ(runner->join().validate(), "");
      for (size_t s = 0; s < streams && !output_may_have_ended; ++s) {
        const size_t live = runner->join().state(s).live_rows();
        const bool drops_early = runner->merges() && made.options.late == LatePolicy::kDrop;
        ASSERT_TRUE(drops_early ? live <= oracle.alive(s) : live == oracle.alive(s))
            << "stream " << s << ", call " << call << ": " << live << " rows, " << oracle.alive(s)
            << " expected";
      }
    }
  }
}

TEST(MultiJoin, EveryAlgorithmGivesWhatTheNestedLoopOverAllHistoryGives) {
  const char* more = std::getenv("STREAMJOIN_SEEDS");
  const uint32_t seeds = more != nullptr ? static_cast<uint32_t>(std::atoi(more)) : 1000;
  for (uint32_t seed = 0; seed < seeds && !HasFailure(); ++seed) run_seed(seed);
}

MultiJoinOptions two_streams(Duration width) {
  MultiJoinOptions options;
  options.alternatives = {{{0, width}, {width, 0}}};
  options.classes = {{0}, {0}};
  options.value_slots = {0, 0};
  return options;
}

MultiResults push_one(MultiJoin& join, size_t stream, uint32_t batch, Time time, Code key) {
  const std::vector<Time> times{time};
  const std::vector<Code> keys{key};
  MultiResults results;
  join.push(stream, {batch, times, {keys}, nullptr, {}}, results);
  return results;
}

class Throwing : public TuplePredicate {
 public:
  void evaluate(TupleView&, std::span<uint8_t>) override { throw std::runtime_error("asked"); }
};

TEST(MultiJoin, AThrowingPredicateLeavesTheStateAsItWas) {
  MultiJoinOptions options = two_streams(5);
  options.conjuncts.push_back({{0, 1}, std::make_shared<Throwing>()});
  MultiJoin join(options, {nullptr});
  push_one(join, 0, 1, 10, 7);
  EXPECT_THROW(push_one(join, 1, 1, 11, 7), std::runtime_error);
  EXPECT_EQ(join.clock(1), kBeginning);
  EXPECT_EQ(join.state(1).live_rows(), 0u);
  EXPECT_EQ(join.counters(1).rows_in, 0u);
}

TEST(MultiJoin, ALateRowIsRefusedUnderTheErrorPolicyAndNothingChanges) {
  MultiJoinOptions options = two_streams(5);
  options.late = LatePolicy::kError;
  MultiJoin join(options, {nullptr});
  const std::vector<Time> times{10, 9};
  const std::vector<Code> keys{1, 1};
  MultiResults results;
  EXPECT_THROW(join.push(0, {1, times, {keys}, nullptr, {}}, results), RefusedBatch);
  EXPECT_EQ(join.clock(0), kBeginning);
  EXPECT_EQ(join.state(0).live_rows(), 0u);
}

TEST(MultiJoin, AnEndedStreamWithoutRowsEndsTheOutputOnce) {
  MultiJoin join(two_streams(5), {nullptr});
  push_one(join, 0, 1, 10, 7);
  MultiResults results;
  join.end(1, 12, results);
  ASSERT_EQ(results.punctuations.size(), 1u);
  EXPECT_TRUE(results.punctuations[0].any);
  EXPECT_EQ(results.punctuations[0].kind, PropagationKind::kEarly);
  EXPECT_EQ(join.state(0).live_rows(), 0u);
  EXPECT_EQ(join.counters(0).purged, 1u);
  MultiResults later;
  join.finish(later);
  EXPECT_TRUE(later.punctuations.empty());
}

TEST(MultiJoin, ARowOfAnEndedStreamIsLateAndByPolicyAViolation) {
  MultiJoinOptions options = two_streams(5);
  options.late = LatePolicy::kInsert;
  MultiJoin join(options, {nullptr});
  push_one(join, 1, 1, 10, 7);
  MultiResults results;
  join.end(1, 12, results);
  const MultiResults refused = push_one(join, 1, 2, 13, 7);
  EXPECT_EQ(refused.violations.size(), 1u);
  EXPECT_EQ(join.counters(1).violations, 1u);
}

TEST(MultiJoin, RowsOfAnUnorderedStreamDoNotRaiseItsClock) {
  MultiJoinOptions options = two_streams(5);
  options.unordered = {true, false};
  options.late = LatePolicy::kError;
  MultiJoin join(options, {nullptr});
  push_one(join, 1, 1, 10, 7);
  EXPECT_TRUE(push_one(join, 0, 1, 30, 7).rows.empty());
  EXPECT_EQ(join.clock(0), kBeginning);
  EXPECT_EQ(push_one(join, 0, 2, 12, 7).rows.size(), 2u);
  EXPECT_EQ(join.horizon(0), kBeginning);
  MultiResults results;
  join.advance(0, 20, results);
  EXPECT_EQ(join.state(1).live_rows(), 0u);
  EXPECT_EQ(join.horizon(0), 12);
  push_one(join, 1, 2, 25, 7);
  EXPECT_EQ(join.horizon(0), 20);
  EXPECT_EQ(join.horizon(1), 25);
  EXPECT_EQ(join.validate(), "");
}

TEST(MultiJoin, ARehearsalGivesWhatAPushGivesAndChangesNothing) {
  MultiJoin join(two_streams(5), {nullptr});
  push_one(join, 1, 1, 10, 7);
  const Time times[] = {11, 9, 14};
  const Code keys[] = {7, 7, 7};
  const StreamBatch batch{1, times, {keys}, nullptr, {}};
  ArchiveWriter before;
  join.save(before);
  const std::vector<RowRef> rehearsed = join.rehearse(0, batch);
  ArchiveWriter after;
  join.save(after);
  EXPECT_EQ(before.take(), after.take());
  MultiResults results;
  join.push(0, batch, results);
  EXPECT_EQ(rehearsed, results.rows);
  EXPECT_EQ(rehearsed.size(), 4u);  // the second is late and dropped
}

TEST(MultiJoin, MemoryFollowsTheWindow) {
  MultiJoin join(two_streams(100), {nullptr});
  for (Time time = 0; time < 20000; ++time) {
    push_one(join, static_cast<size_t>(time % 2), static_cast<uint32_t>(time), time, time % 50);
    for (size_t s = 0; s < 2; ++s) {
      ASSERT_LE(join.state(s).live_rows(), 102u);
      ASSERT_LE(join.state(s).dead_rows(), join.state(s).live_rows() / 4 + StreamState::kSlackRows);
    }
  }
}

TEST(MultiJoin, ThePipelineLetsItsTuplesGoWithTheirRows) {
  MultiJoinOptions options;
  options.algorithm = MultiAlgorithm::kNestedLoopPipeline;
  options.alternatives = {Matrix(3, std::vector<std::optional<Duration>>(3, 50))};
  options.classes.assign(3, {0});
  options.value_slots.assign(3, 0);
  MultiJoin join(options, {nullptr});
  size_t results = 0;
  for (Time time = 0; time < 6000; ++time) {
    const size_t stream = static_cast<size_t>(time % 3);
    results += push_one(join, stream, static_cast<uint32_t>(time), time, time / 3 % 20).rows.size();
    // 17 rows of a stream in reach, and as many pairs as rows of a key within 50 of each other; the dead
    // ones that wait for a sweep are at most as many as dead rows.
    ASSERT_LE(join.stored_tuples(), 17u + StreamState::kSlackRows + 17u);
  }
  EXPECT_GT(results, 0u);
  MultiResults rest;
  join.finish(rest);
  EXPECT_EQ(join.stored_tuples(), 0u);
}

// Windows of 3. The row at 15 of stream 2 could still meet 18 of stream 0, but stream 1 begins at 20.
TEST(MultiJoin, MergeDropsWhatOneStreamHasLeftBehind) {
  MultiJoinOptions options;
  options.alternatives = {Matrix(3, std::vector<std::optional<Duration>>(3, 3))};
  options.classes.assign(3, {0});
  options.value_slots.assign(3, 0);
  const auto rows_after = [&](MultiAlgorithm algorithm, LatePolicy late, bool behind) {
    options.algorithm = algorithm;
    options.late = late;
    options.rows_come_behind = behind;
    MultiJoin join(options, {nullptr});
    for (const Time time : {10, 11, 18}) push_one(join, 0, static_cast<uint32_t>(time), time, 5);
    push_one(join, 2, 1, 15, 5);
    EXPECT_TRUE(push_one(join, 1, 1, 20, 5).rows.empty());
    EXPECT_EQ(join.validate(), "");
    std::vector<size_t> rows;
    for (size_t s = 0; s < 3; ++s) rows.push_back(join.state(s).live_rows());
    EXPECT_EQ(push_one(join, 2, 2, 19, 5).rows.size(), 3u);  // (18, 20, 19)
    return rows;
  };
  const std::vector<size_t> dropped{1, 1, 0};
  // 10 and 11 are behind the clocks of both others only with 15 of stream 2: 10 + 3 < 15, 11 + 3 < 15.
  const std::vector<size_t> kept{1, 1, 1};
  for (const MultiAlgorithm algorithm : {MultiAlgorithm::kMergeGca, MultiAlgorithm::kMergeLca}) {
    EXPECT_EQ(rows_after(algorithm, LatePolicy::kDrop, false), dropped);
    EXPECT_EQ(rows_after(algorithm, LatePolicy::kDrop, true), kept);
    EXPECT_EQ(rows_after(algorithm, LatePolicy::kInsert, false), kept);
  }
  EXPECT_EQ(rows_after(MultiAlgorithm::kNestedLoop, LatePolicy::kDrop, false), kept);
}

// Windows of 3, which imply 6 between streams 1 and 2. Stream 0 begins at 20: more than 3 behind the row
// at 15.
TEST(MultiJoin, GcaDropsByTheWidestWindowAndLcaByThatOfThePair) {
  MultiJoinOptions options;
  Matrix matrix(3, std::vector<std::optional<Duration>>(3, 3));
  matrix[1][2] = matrix[2][1] = 6;
  options.alternatives = {matrix};
  options.classes.assign(3, {0});
  options.value_slots.assign(3, 0);
  const auto rows_left = [&](MultiAlgorithm algorithm) {
    options.algorithm = algorithm;
    MultiJoin join(options, {nullptr});
    push_one(join, 1, 1, 13, 5);
    push_one(join, 1, 2, 15, 5);
    push_one(join, 0, 1, 20, 5);
    EXPECT_EQ(join.validate(), "");
    return join.state(1).live_rows();
  };
  EXPECT_EQ(rows_left(MultiAlgorithm::kMergeGca), 1u);  // 13 + 6 < 20
  EXPECT_EQ(rows_left(MultiAlgorithm::kMergeLca), 0u);
  EXPECT_EQ(rows_left(MultiAlgorithm::kHash), 2u);  // stream 2 has not begun
}

TEST(MultiJoin, TenStreamsJoin) {
  MultiJoinOptions options;
  options.alternatives = {Matrix(10, std::vector<std::optional<Duration>>(10, 3))};
  options.classes.assign(10, {0});
  options.value_slots.assign(10, 0);
  for (const MultiAlgorithm algorithm : kAlgorithms) {
    options.algorithm = algorithm;
    MultiJoin join(options, {nullptr});
    for (size_t s = 0; s < 9; ++s) EXPECT_TRUE(push_one(join, s, 1, 100, 5).rows.empty());
    push_one(join, 3, 2, 101, 5);
    EXPECT_EQ(push_one(join, 9, 1, 102, 5).rows.size(), 20u);  // stream 3 has two rows
  }
}

}  // namespace
}  // namespace streamjoin::testing
