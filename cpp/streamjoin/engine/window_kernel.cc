#include "streamjoin/engine/window_kernel.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

/// A bound at an extreme is open and stays there.
Time shifted(Time time, Duration bound) {
  return bound == kBeginning || bound == kEnd ? bound : add_saturating(time, bound);
}

constexpr size_t kBlock = GroupedRows::kBlock;
constexpr uint32_t kNoGroup = GroupTable::kNoGroup;
constexpr size_t kMaxRows = size_t{1} << 31;
using Entry = GroupedRows::Entry;
using Run = GroupedRows::Run;
// Up to this length a walk beats a search.
constexpr uint32_t kShortGroup = 8;

void check_columns(const TimedKeyColumns& side, const char* name) {
  const auto refuse = [&](const std::string& what) { throw UsageError(what + ", on the side: " + name); };
  if (side.times.size() != side.keys.size()) {
    refuse("keys and times must have the same length, got " + std::to_string(side.keys.size()) +
           " keys and " + std::to_string(side.times.size()) + " times");
  }
  if (!side.valid.empty() && side.valid.size() != side.keys.size()) {
    refuse("validity must be as long as the keys, got " + std::to_string(side.valid.size()) + " for " +
           std::to_string(side.keys.size()) + " keys");
  }
  if (side.keys.size() >= kMaxRows)
    refuse("too many rows for one call, got " + std::to_string(side.keys.size()));
  for (size_t row = 0; row < side.times.size(); ++row) {
    if (side.times[row] == kBeginning || side.times[row] == kEnd) {
      refuse("the two extreme 64-bit values are no times, got one at row " + std::to_string(row));
    }
  }
}

/// Finds, for each left row, the run of its group that lies inside the bound. Three ways, by what the group
/// and the left rows are like: a short group is walked; left rows in time order go on from where the last row
/// of the key stopped, since their runs only move forward; else a binary search, for all rows of a block in
/// lockstep so that their cache misses overlap.
class RunFinder {
 public:
  RunFinder(const GroupedRows& right, const TimedKeyColumns& left, Duration lower, Duration upper)
      : right_(right), left_(left), lower_(lower), upper_(upper) {
    if (right.longest() <= kShortGroup) return;
    long_groups_ = true;
    forward_ = std::is_sorted(left.times.begin(), left.times.end());
    if (forward_) stopped_.resize(right.table().groups());
  }

  /// Calls `found(left row, run)` for every left row in order; the run is empty for a row without match.
  template <typename Found>
  void for_each(Found found) {
    for (size_t begin = 0; begin < left_.keys.size(); begin += kBlock) {
      const size_t size = std::min(kBlock, left_.keys.size() - begin);
      find_groups(begin, size);
      if (long_groups_ && !forward_) search_starts(begin, size);
      for (size_t i = 0; i < size; ++i) found(begin + i, narrow(i, left_.times[begin + i]));
    }
  }

 private:
  void find_groups(size_t begin, size_t size) {
    const GroupTable& table = right_.table();
    std::array<size_t, kBlock> homes;
    for (size_t i = 0; i < size; ++i) table.prefetch(homes[i] = table.home(left_.keys[begin + i]));
    for (size_t i = 0; i < size; ++i) {
      const bool null = !left_.valid.empty() && left_.valid[begin + i] == 0;
      groups_[i] = null ? kNoGroup : table.find(left_.keys[begin + i], homes[i]);
      if (groups_[i] != kNoGroup) right_.prefetch_group(groups_[i]);
    }
    for (size_t i = 0; i < size; ++i) {
      runs_[i] = groups_[i] == kNoGroup ? Run{} : right_.run_of(groups_[i]);
      const uint32_t skipped = forward_ && runs_[i].count > kShortGroup ? stopped_[groups_[i]].first : 0;
      if (runs_[i].count > 0) __builtin_prefetch(right_.entries() + runs_[i].first + skipped);
    }
  }

  /// Leaves in starts_ the first position in each long group that is not before the row's lower bound.
  void search_starts(size_t begin, size_t size) {
    std::array<uint32_t, kBlock> searched, lengths;
    std::array<Time, kBlock> lows;
    size_t active = 0;
    for (size_t i = 0; i < size; ++i) {
      starts_[i] = 0;
      if (runs_[i].count <= kShortGroup) continue;
      searched[active] = static_cast<uint32_t>(i);
      lengths[active] = runs_[i].count;
      lows[active++] = shifted(left_.times[begin + i], lower_);
    }
    for (bool going = active > 0; going;) {
      going = false;
      for (size_t j = 0; j < active; ++j) {
        if (lengths[j] == 0) continue;
        const uint32_t i = searched[j], half = lengths[j] / 2;
        const Entry* from = right_.entries() + runs_[i].first + starts_[i];
        // The comparison is a number, not a branch: it is a coin toss that no predictor guesses.
        const uint32_t before = from[half].time < lows[j];
        starts_[i] += before * (half + 1);
        lengths[j] = before ? lengths[j] - half - 1 : half;
        __builtin_prefetch(right_.entries() + runs_[i].first + starts_[i] + lengths[j] / 2);
        going = true;
      }
    }
  }

  Run narrow(size_t i, Time time) {
    const Run group = runs_[i];
    if (group.count == 0) return {};
    const Time low = shifted(time, lower_), high = shifted(time, upper_);
    const Entry* entries = right_.entries() + group.first;
    const auto too_early = [&](const Entry& entry) { return entry.time < low; };
    const auto not_too_late = [&](const Entry& entry) { return entry.time <= high; };
    uint32_t begin = 0, end = 0;
    if (group.count <= kShortGroup) {
      while (begin < group.count && too_early(entries[begin])) ++begin;
      end = begin;
      while (end < group.count && not_too_late(entries[end])) ++end;
    } else if (forward_) {
      auto& stopped = stopped_[groups_[i]];
      begin = stopped.first = gallop(entries, stopped.first, group.count, too_early);
      end = stopped.second = gallop(entries, stopped.second, group.count, not_too_late);
    } else {
      begin = starts_[i];
      end = gallop(entries, begin, group.count, not_too_late);
    }
    // With lower > upper the two ends may have crossed.
    return begin < end ? Run{group.first + begin, end - begin} : Run{};
  }

  /// The first position at or after `from` that `pass` refuses (it takes a prefix of the group), in O(log of
  /// the distance).
  template <typename Pass>
  static uint32_t gallop(const Entry* entries, uint32_t from, uint32_t count, Pass pass) {
    uint32_t step = 1, to = from;
    while (to < count && pass(entries[to])) {
      from = to + 1;
      to = step < count - to ? to + step : count;
      step *= 2;
    }
    return static_cast<uint32_t>(std::partition_point(entries + from, entries + to, pass) - entries);
  }

  const GroupedRows& right_;
  const TimedKeyColumns& left_;
  const Duration lower_, upper_;
  bool long_groups_ = false, forward_ = false;
  std::vector<std::pair<uint32_t, uint32_t>> stopped_;  // by group: where the last run began and ended
  // Of the block in work:
  std::array<uint32_t, kBlock> groups_, starts_;
  std::array<Run, kBlock> runs_;
};

std::vector<int64_t> rows_by_match(const TimedKeyColumns& left, const TimedKeyColumns& right, Duration lower,
                                   Duration upper, bool wanted) {
  check_columns(left, "left");
  check_columns(right, "right");
  const GroupedRows grouped(right);
  std::vector<uint8_t> chosen(left.keys.size());
  size_t total = 0;
  RunFinder(grouped, left, lower, upper).for_each([&](size_t row, Run run) {
    chosen[row] = (run.count > 0) == wanted;
    total += chosen[row];
  });
  std::vector<int64_t> rows;
  rows.reserve(total);
  for (size_t row = 0; row < chosen.size(); ++row) {
    if (chosen[row]) rows.push_back(static_cast<int64_t>(row));
  }
  return rows;
}

}  // namespace

RowPairs window_join(const TimedKeyColumns& left, const TimedKeyColumns& right, Duration lower,
                     Duration upper) {
  check_columns(left, "left");
  check_columns(right, "right");
  const GroupedRows grouped(right);
  std::vector<Run> runs(left.keys.size());
  size_t total = 0;
  RunFinder(grouped, left, lower, upper).for_each([&](size_t row, Run run) {
    runs[row] = run;
    total += run.count;
  });
  RowPairs pairs{std::vector<int64_t>(total), std::vector<int64_t>(total)};
  size_t at = 0;
  for (size_t row = 0; row < runs.size(); ++row) {
    if (row + kBlock < runs.size()) __builtin_prefetch(grouped.entries() + runs[row + kBlock].first);
    const Entry* entry = grouped.entries() + runs[row].first;
    for (uint32_t i = 0; i < runs[row].count; ++i, ++at) {
      pairs.left[at] = static_cast<int64_t>(row);
      pairs.right[at] = entry[i].row;
    }
  }
  return pairs;
}

std::vector<int64_t> window_semi_join(const TimedKeyColumns& left, const TimedKeyColumns& right,
                                      Duration lower, Duration upper) {
  return rows_by_match(left, right, lower, upper, true);
}

std::vector<int64_t> window_anti_join(const TimedKeyColumns& left, const TimedKeyColumns& right,
                                      Duration lower, Duration upper) {
  return rows_by_match(left, right, lower, upper, false);
}

}  // namespace streamjoin
