// The joins that the W-join paper compares with, adapted to windows: a window check on every tuple, and a
// clean-up of the buffers every `clean_every` rows; between clean-ups rows that no window reaches any more
// stay and are met. Only benchmarks use them.
//
//   RippleJoin   every buffered row of the other streams is looked at
//   XJoin        a hash table per stream; rows of equal key are looked at
//
// Both extend a new row stream by stream, in declared order, within the period that the rows bound so far
// leave; results are row references, as those of MultiJoin.

#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "m_way_streams.h"

namespace streamjoin::bench {

struct OlderJoinOptions {
  size_t streams = 2;
  Duration window = 0;
  size_t clean_every = 10000;
};

struct BufferedRow {
  Time time;
  Code key;
  RowRef row;
};

/// The part that both share. `Buffers` gives the rows to look at and takes out those before a time.
template <typename Buffers>
class OlderJoin {
 public:
  explicit OlderJoin(OlderJoinOptions options)
      : options_(options), buffers_(options.streams), clocks_(options.streams, kBeginning) {
    tuple_.resize(options.streams);
  }

  size_t push(std::span<const TimedRow> rows) {
    found_.clear();
    for (const TimedRow& row : rows) take(row);
    return found_.size() / options_.streams;
  }

 private:
  void take(const TimedRow& row) {
    const BufferedRow buffered{row.time, row.key, {row.row, 0}};
    tuple_[row.stream] = buffered.row;
    extend(0, row.stream, row.key, {row.time - options_.window, row.time + options_.window});
    buffers_.add(row.stream, buffered);
    clocks_[row.stream] = row.time;
    if (++rows_ % options_.clean_every == 0) clean();
  }

  void extend(size_t at, size_t origin, Code key, Period period) {
    if (at == origin) ++at;
    if (at == options_.streams) {
      found_.insert(found_.end(), tuple_.begin(), tuple_.end());
      return;
    }
    for (const BufferedRow& row : buffers_.look(at, key)) {
      if (!period.contains(row.time) || row.key != key) continue;
      tuple_[at] = row.row;
      extend(at + 1, origin, key,
             {std::max(period.first, row.time - options_.window),
              std::min(period.last, row.time + options_.window)});
    }
  }

  // A row goes when it is more than the window before the last row of every other stream.
  void clean() {
    for (size_t stream = 0; stream < options_.streams; ++stream) {
      Time slowest = kEnd;
      for (size_t other = 0; other < options_.streams; ++other) {
        if (other != stream) slowest = std::min(slowest, clocks_[other]);
      }
      if (slowest != kBeginning) buffers_.remove_before(stream, slowest - options_.window);
    }
  }

  OlderJoinOptions options_;
  Buffers buffers_;
  std::vector<Time> clocks_;
  std::vector<RowRef> tuple_;
  std::vector<RowRef> found_;
  size_t rows_ = 0;
};

class RippleBuffers {
 public:
  explicit RippleBuffers(size_t streams) : rows_(streams) {}
  void add(size_t stream, const BufferedRow& row) { rows_[stream].push_back(row); }
  std::span<const BufferedRow> look(size_t stream, Code) const { return rows_[stream]; }
  void remove_before(size_t stream, Time time) {
    std::erase_if(rows_[stream], [=](const BufferedRow& row) { return row.time < time; });
  }

 private:
  std::vector<std::vector<BufferedRow>> rows_;
};

class XJoinBuffers {
 public:
  explicit XJoinBuffers(size_t streams) : tables_(streams) {}
  void add(size_t stream, const BufferedRow& row) { tables_[stream][row.key].push_back(row); }
  std::span<const BufferedRow> look(size_t stream, Code key) const {
    const auto found = tables_[stream].find(key);
    return found == tables_[stream].end() ? std::span<const BufferedRow>() : found->second;
  }
  void remove_before(size_t stream, Time time) {
    for (auto& [key, rows] : tables_[stream])
      std::erase_if(rows, [=](const BufferedRow& row) { return row.time < time; });
    std::erase_if(tables_[stream], [](const auto& entry) { return entry.second.empty(); });
  }

 private:
  std::vector<std::unordered_map<Code, std::vector<BufferedRow>>> tables_;
};

using RippleJoin = OlderJoin<RippleBuffers>;
using XJoin = OlderJoin<XJoinBuffers>;

}  // namespace streamjoin::bench
