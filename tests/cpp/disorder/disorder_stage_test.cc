#include "streamjoin/disorder/disorder_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>

#include "base/fresh_seed.h"

namespace streamjoin {
namespace {

struct Arrival {
  uint32_t stream;
  Time time;
};

/// Keeps what it gets; a row "joins" by a rule that depends on nothing but the row.
class Recorder : public JoinSink {
 public:
  void join(std::span<const ReleasedRow> rows, std::span<uint64_t> results) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      released.push_back(rows[i]);
      if (!rows[i].behind && !results.empty()) results[i] = rows[i].row.index % 3;
    }
  }
  std::vector<ReleasedRow> released;
};

std::vector<Arrival> random_arrivals(std::mt19937_64& random, uint32_t streams, Time largest_delay) {
  std::vector<Arrival> arrivals;
  std::vector<Time> now(streams, 1000);
  uint32_t stream = 0;
  for (size_t i = 0; i < 400; ++i) {
    if (random() % 8 == 0 || i == 0) stream = static_cast<uint32_t>(random() % streams);
    now[stream] += static_cast<Time>(random() % 4);
    const Time delay = random() % 3 ? 0 : static_cast<Time>(random() % (largest_delay + 1));
    arrivals.push_back({stream, now[stream] - delay});
  }
  return arrivals;
}

/// Algorithm 1 behind K-slack, one row at a time, with nothing but multimaps.
std::vector<std::pair<Time, uint32_t>> by_definition(const std::vector<Arrival>& arrivals, uint32_t streams,
                                                     Duration slack) {
  std::vector<std::multimap<Time, uint32_t>> waiting(streams), sync(streams);
  std::vector<Time> local(streams, kBeginning);
  std::vector<std::pair<Time, uint32_t>> out;
  Time clock = kBeginning;
  const auto to_sync = [&](uint32_t stream, Time time, uint32_t index) {
    if (time <= clock) {
      out.push_back({time, index});
      return;
    }
    sync[stream].emplace(time, index);
    while (std::none_of(sync.begin(), sync.end(), [](const auto& rows) { return rows.empty(); })) {
      clock = kEnd;
      for (const auto& rows : sync) clock = std::min(clock, rows.begin()->first);
      for (auto& rows : sync) {
        for (; !rows.empty() && rows.begin()->first == clock; rows.erase(rows.begin()))
          out.push_back(*rows.begin());
      }
    }
  };
  for (uint32_t i = 0; i < arrivals.size(); ++i) {
    const auto [stream, time] = arrivals[i];
    local[stream] = std::max(local[stream], time);
    auto& rows = waiting[stream];
    rows.emplace(time, i);
    while (!rows.empty() && rows.begin()->first + slack <= local[stream]) {
      const auto first = *rows.begin();
      rows.erase(rows.begin());
      to_sync(stream, first.first, first.second);
    }
  }
  return out;
}

/// Feeds the arrivals in runs of one stream, cut at random, with a snapshot now and then.
Recorder run(DisorderOptions options, const std::vector<Arrival>& arrivals, std::mt19937_64& random,
             size_t longest, bool finish, std::vector<Duration>* slacks = nullptr) {
  auto stage = std::make_unique<DisorderStage>(options);
  Recorder sink;
  for (size_t i = 0; i < arrivals.size();) {
    std::vector<Time> times;
    std::vector<uint32_t> indexes;
    const uint32_t stream = arrivals[i].stream;
    for (size_t n = 1 + random() % longest; n > 0 && i < arrivals.size() && arrivals[i].stream == stream;
         --n) {
      times.push_back(arrivals[i].time);
      indexes.push_back(static_cast<uint32_t>(i++));
    }
    stage->push(stream, times, indexes, sink);
    EXPECT_EQ(stage->validate(), "");
    if (random() % 50 == 0) {
      ArchiveWriter out;
      stage->save(out);
      const std::string bytes = out.take();
      ArchiveReader in(bytes);
      stage = std::make_unique<DisorderStage>(options);
      stage->load(in);
      EXPECT_TRUE(in.at_end());
    }
  }
  if (slacks) slacks->push_back(stage->slack());
  if (finish) stage->finish(sink);
  return sink;
}

TEST(DisorderStage, ReleasesWhatTheAlgorithmsSayForAnySplitAndAfterAnySnapshot) {
  const uint64_t seed = fresh_seed();
  for (uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed + round));
    std::mt19937_64 random(seed + round);
    const auto streams = static_cast<uint32_t>(2 + random() % 3);
    const auto arrivals = random_arrivals(random, streams, random() % 3 ? 40 : 0);
    const auto slack = random() % 2 ? static_cast<Duration>(random() % 50) : 0;
    const Recorder sink =
        run({.streams = streams, .slack = slack}, arrivals, random, random() % 2 ? 6 : 60, false);
    std::vector<std::pair<Time, uint32_t>> got;
    for (const ReleasedRow& row : sink.released) got.push_back({row.row.time, row.row.index});
    ASSERT_EQ(got, by_definition(arrivals, streams, slack));
  }
}

TEST(DisorderStage, SlackAsLargeAsEveryDelayPutsAllInOrderAndLosesNothing) {
  const uint64_t seed = fresh_seed();
  for (uint64_t round = 0; round < 100; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed + round));
    std::mt19937_64 random(seed + round);
    const auto arrivals = random_arrivals(random, 3, 40);
    const Recorder sink = run({.streams = 3, .slack = 40}, arrivals, random, 6, true);
    ASSERT_EQ(sink.released.size(), arrivals.size());
    Time last = kBeginning;
    for (const ReleasedRow& row : sink.released) {
      ASSERT_FALSE(row.behind);
      ASSERT_GE(row.row.time, last);
      last = row.row.time;
    }
  }
}

/// K-slack and algorithm 1 with heartbeats and punctuations, one at a time, with nothing but multimaps.
class ByDefinition {
 public:
  ByDefinition(uint32_t streams, std::optional<Duration> slack) : streams_(streams), slack_(slack) {}

  void push(uint32_t number, Time time, uint32_t index) {
    Stream& stream = streams_[number];
    stream.local = std::max(stream.local, time);
    largest_delay_ = std::max(largest_delay_, stream.local - time);
    stream.waiting.emplace(std::pair{time, 0}, index);
    release(number);
  }
  void punctuate(uint32_t number, Time time, uint32_t index) {
    if (time < clock_ && streams_[number].waiting.empty()) {
      out.push_back({time, index});
      return;
    }
    streams_[number].waiting.emplace(std::pair{time, 1}, index);
    release(number);
  }
  void advance(uint32_t number, Time time) {
    Stream& stream = streams_[number];
    stream.local = std::max(stream.local, time);
    stream.until = std::max(stream.until, time);
    release(number);
    stream.promised = stream.until;
    drain();
  }
  std::vector<std::pair<Time, uint32_t>> out;

 private:
  using Rows = std::multimap<std::pair<Time, int>, uint32_t>;  // punctuations behind the rows of their time
  struct Stream {
    Rows waiting, sync;
    Time local = kBeginning;
    Time until = kBeginning;
    Time promised = kBeginning;  // as the synchronizer knows it
  };
  void release(uint32_t number) {
    Stream& stream = streams_[number];
    const Duration slack = slack_.value_or(largest_delay_);
    while (!stream.waiting.empty()) {
      const auto [key, index] = *stream.waiting.begin();
      if (key.first > stream.until && (stream.local == kBeginning || key.first + slack > stream.local))
        return;
      stream.waiting.erase(stream.waiting.begin());
      if (key.first <= clock_) {
        out.push_back({key.first, index});
      } else {
        stream.sync.emplace(key, index);
        drain();
      }
    }
  }
  void drain() {
    for (;;) {
      Time first = kEnd;
      Time waits_for = kEnd;
      for (const Stream& stream : streams_) {
        if (stream.sync.empty()) {
          waits_for = std::min(waits_for, stream.promised);
        } else {
          first = std::min(first, stream.sync.begin()->first.first);
        }
      }
      if (first == kEnd || first > waits_for) return;
      clock_ = first;
      for (Stream& stream : streams_) {
        Rows& rows = stream.sync;
        for (; !rows.empty() && rows.begin()->first.first == clock_; rows.erase(rows.begin()))
          out.push_back({clock_, rows.begin()->second});
      }
    }
  }
  std::vector<Stream> streams_;
  std::optional<Duration> slack_;  // none: the largest delay seen
  Duration largest_delay_ = 0;
  Time clock_ = kBeginning;
};

TEST(DisorderStage, HeartbeatsAndPunctuationsFollowTheAlgorithmsForAnySplit) {
  const uint64_t seed = fresh_seed();
  for (uint64_t round = 0; round < 300; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed + round));
    std::mt19937_64 random(seed + round);
    const auto streams = static_cast<uint32_t>(2 + random() % 3);
    DisorderOptions options{.streams = streams};
    std::optional<Duration> slack;
    if (random() % 3) {
      options.slack = slack.emplace(random() % 2 ? static_cast<Duration>(random() % 50) : 0);
    } else {
      options.policy = SlackPolicy::kLargestDelay;
    }
    DisorderStage stage(options);
    ByDefinition expected(streams, slack);
    Recorder sink;
    std::vector<Time> now(streams, 1000);
    uint32_t index = 0;
    const size_t longest = random() % 2 ? 4 : 60;
    const auto gap = static_cast<Time>(1 + random() % 4);
    const Time largest_delay = random() % 4 ? 40 : 0;
    while (index < 500) {
      const auto stream = static_cast<uint32_t>(random() % streams);
      const uint64_t what = random() % 10;
      const Time earlier = now[stream] - static_cast<Time>(random() % 30);
      if (what == 0) {
        stage.advance(stream, earlier, sink);
        expected.advance(stream, earlier);
      } else if (what == 1) {
        stage.punctuate(stream, earlier, index, sink);
        expected.punctuate(stream, earlier, index++);
      } else {
        std::vector<Time> times;
        std::vector<uint32_t> indexes;
        for (size_t n = 1 + random() % longest; n > 0; --n) {
          now[stream] += static_cast<Time>(random() % static_cast<uint64_t>(gap));
          const bool late = largest_delay > 0 && random() % 5 == 0;
          times.push_back(now[stream] - (late ? static_cast<Time>(random() % largest_delay) : 0));
          indexes.push_back(index);
          expected.push(stream, times.back(), index++);
        }
        stage.push(stream, times, indexes, sink);
      }
      ASSERT_EQ(stage.validate(), "");
      std::vector<std::pair<Time, uint32_t>> got;
      for (const ReleasedRow& row : sink.released) got.push_back({row.row.time, row.row.index});
      ASSERT_EQ(got, expected.out);
    }
  }
}

TEST(DisorderStage, ARowSetsFreeWhatAnotherStreamHasPromisedToBePast) {
  DisorderStage stage({.streams = 3});
  Recorder sink;
  stage.push(2, std::vector<Time>{90, 95}, std::vector<uint32_t>{0, 1}, sink);
  stage.advance(1, 92, sink);
  EXPECT_TRUE(sink.released.empty());
  stage.push(0, std::vector<Time>{100}, std::vector<uint32_t>{2}, sink);
  ASSERT_EQ(sink.released.size(), 1u);  // stream 1 may still send a row at 93
  EXPECT_EQ(sink.released[0].row.index, 0u);
}

TEST(DisorderStage, NoPolicyDependsOnTheSplitOrOnSnapshots) {
  const uint64_t seed = fresh_seed();
  for (uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed + round));
    std::mt19937_64 random(seed + round);
    const auto arrivals = random_arrivals(random, 2, random() % 3 ? 40 : random() % 2);
    DisorderOptions options{.streams = 2, .policy = SlackPolicy::kRecall};
    if (random() % 2) options.policy = random() % 2 ? SlackPolicy::kFixed : SlackPolicy::kLargestDelay;
    options.slack = static_cast<Duration>(random() % 30);
    options.recall = {.target = 0.95,
                      .period = 200,
                      .adapt_every = 20,
                      .granularity = 2,
                      .basic_window = 2,
                      .learned_selectivity = true,
                      .windows = {{0, 30}, {30, 0}}};
    if (random() % 2) options.idle_after = 15;
    std::vector<Duration> slacks;
    const Recorder one = run(options, arrivals, random, 1, true, &slacks);
    const Recorder many = run(options, arrivals, random, 40, true, &slacks);
    ASSERT_EQ(slacks[0], slacks[1]);
    ASSERT_EQ(one.released, many.released);
    ASSERT_EQ(one.released.size(), arrivals.size());
  }
}

TEST(DisorderStage, AnIdleStreamStopsNobodyAndItsRowsAreNotLost) {
  DisorderStage stage({.streams = 2, .slack = 5, .idle_after = 10});
  Recorder sink;
  const std::vector<Time> quiet{100};
  const std::vector<Time> busy{101, 109, 110, 111, 120};
  stage.push(0, quiet, std::vector<uint32_t>{0}, sink);
  stage.push(1, busy, std::vector<uint32_t>{1, 2, 3, 4, 5}, sink);
  // At 111 stream 0 is 11 behind: its row at 100 goes, then what stream 1 need not hold at 120: up to 115.
  std::vector<uint32_t> order;
  for (const ReleasedRow& row : sink.released) order.push_back(row.row.index);
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(stage.is_idle(0));
  stage.push(0, std::vector<Time>{119}, std::vector<uint32_t>{6}, sink);
  EXPECT_FALSE(stage.is_idle(0));
  stage.finish(sink);
  EXPECT_EQ(sink.released.size(), 7u);
}

TEST(DisorderStage, HeartbeatsAndPunctuationsTravelAtTheirTime) {
  DisorderStage stage({.streams = 2, .slack = 100});
  Recorder sink;
  stage.punctuate(0, 12, 9, sink);
  stage.push(0, std::vector<Time>{10, 12, 13}, std::vector<uint32_t>{0, 1, 2}, sink);
  EXPECT_TRUE(sink.released.empty());
  stage.advance(0, 12, sink);
  EXPECT_TRUE(sink.released.empty());  // stream 1 may still send earlier ones
  stage.advance(1, 20, sink);
  std::vector<uint32_t> order;
  for (const ReleasedRow& row : sink.released) order.push_back(row.row.index);
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 1, 9}));  // the punctuation stands behind the rows of its time
  stage.punctuate(1, 5, 8, sink);                      // behind the clock: applied at once
  EXPECT_EQ(sink.released.back().row.index, 8u);
}

}  // namespace
}  // namespace streamjoin
