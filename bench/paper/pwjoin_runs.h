// One run of an experiment: two streams through one join, watched at every sampling step.
//
// The streams go in side by side, a fifth of a second of each in turn, as fast as the join takes them (the
// paper's CPU-limited mode). Processor time is that of the join's calls alone; it is the median over repeated
// runs, step by step. What is counted (rows in state, rows and punctuations out) is the same in every
// repetition, or the program ends.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "bench_join.h"
#include "paper/punctuated_stream.h"

namespace streamjoin::bench {

struct Sample {
  double seconds;       // event time
  double milliseconds;  // processor time so far
  size_t state_rows;
  size_t rows_out;
  size_t punctuations_out;
};

struct Experiment {
  std::array<std::vector<StreamEvent>, 2> streams;
  BinaryJoinOptions options;
  Duration step = kSecond;
  Time end = 60 * kSecond;
  size_t repetitions = 1;
};

/// Feeds one stream's events before `until`, rows between two punctuations as one batch.
class Feed {
 public:
  Feed(Side side, const std::vector<StreamEvent>& events) : side_(side), events_(events) {}

  void before(Time until, BinaryJoin& join, Results& results) {
    while (at_ < events_.size() && events_[at_].time < until) {
      const StreamEvent& event = events_[at_];
      if (event.is_punctuation) {
        join.punctuate(side_, event.value, event.time, results);
        ++at_;
        continue;
      }
      times_.clear();
      keys_.clear();
      for (; at_ < events_.size() && events_[at_].time < until && !events_[at_].is_punctuation; ++at_) {
        times_.push_back(events_[at_].time);
        keys_.push_back(events_[at_].value);
      }
      join.push(side_, {.number = 0, .times = times_, .keys = keys_}, nullptr, results);
    }
  }

 private:
  Side side_;
  const std::vector<StreamEvent>& events_;
  size_t at_ = 0;
  std::vector<Time> times_;
  std::vector<Code> keys_;
};

inline std::vector<Sample> run_once(const Experiment& experiment) {
  BinaryJoin join(experiment.options, nullptr);
  std::array feeds{Feed(kLeft, experiment.streams[kLeft]), Feed(kRight, experiment.streams[kRight])};
  std::vector<Sample> samples;
  Results results;
  double seconds = 0;
  size_t rows_out = 0;
  size_t punctuations_out = 0;
  for (Time step = experiment.step; step <= experiment.end; step += experiment.step) {
    for (Time until = step - experiment.step; until < step;) {
      until = std::min(step, until + kSecond / 5);
      seconds += seconds_of([&] {
        for (Feed& feed : feeds) feed.before(until, join, results);
      });
      rows_out += results.rows.size();
      punctuations_out += results.punctuations.size();
      require(results.violations.size() + results.late.size(), 0, "rows refused");
      results.rows.clear();
      results.punctuations.clear();
    }
    const size_t state_rows = join.state(kLeft).live_rows() + join.state(kRight).live_rows();
    samples.push_back(
        {static_cast<double>(step) / kSecond, 1e3 * seconds, state_rows, rows_out, punctuations_out});
  }
  require_valid(join);
  return samples;
}

/// Runs several experiments in turn, so that what else the machine does falls on all of them.
inline std::vector<std::vector<Sample>> run_in_turn(const std::vector<Experiment>& experiments) {
  std::vector<std::vector<Sample>> merged;
  for (const Experiment& experiment : experiments) merged.push_back(run_once(experiment));
  std::vector<std::vector<Samples>> times(experiments.size());
  for (size_t i = 0; i < experiments.size(); ++i) times[i].resize(merged[i].size());
  for (size_t round = 0; round < experiments.front().repetitions; ++round) {
    for (size_t i = 0; i < experiments.size(); ++i) {
      const std::vector<Sample> again = run_once(experiments[i]);
      for (size_t step = 0; step < again.size(); ++step) {
        require(again[step].rows_out, merged[i][step].rows_out, "rows out, repeated");
        require(again[step].state_rows, merged[i][step].state_rows, "rows in state, repeated");
        times[i][step].add(again[step].milliseconds);
      }
    }
  }
  for (size_t i = 0; i < experiments.size(); ++i) {
    for (size_t step = 0; step < merged[i].size(); ++step) {
      merged[i][step].milliseconds = times[i][step].median();
    }
  }
  return merged;
}

}  // namespace streamjoin::bench
