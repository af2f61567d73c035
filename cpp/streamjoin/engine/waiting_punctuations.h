// WaitingPunctuations: patterns on their way through DisorderInput, which knows them by number alone.
//
//   keep(patterns, time) -> number -> ... waits with the rows ... -> take(number)
//
// Numbers are used again. Owned by one operator; one thread.

#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/base/time.h"
#include "streamjoin/punctuation/key_pattern.h"

namespace streamjoin {

class WaitingPunctuations {
 public:
  struct Waiting {
    std::vector<KeyPattern> patterns;
    Time time;
  };

  uint32_t keep(std::vector<KeyPattern> patterns, Time time) {
    if (free_.empty()) {
      waiting_.push_back({std::move(patterns), time});
      return static_cast<uint32_t>(waiting_.size() - 1);
    }
    const uint32_t number = free_.back();
    free_.pop_back();
    waiting_[number] = {std::move(patterns), time};
    return number;
  }
  Waiting take(uint32_t number) {
    free_.push_back(number);
    return std::exchange(waiting_[number], {});
  }

  void save(ArchiveWriter& out) const {
    out.value<uint64_t>(waiting_.size());
    for (const Waiting& waiting : waiting_) {
      out.value(waiting.time);
      out.value<uint64_t>(waiting.patterns.size());
      for (const KeyPattern& pattern : waiting.patterns) pattern.save(out);
    }
    out.array(free_);
  }
  void load(ArchiveReader& in) {
    const uint64_t count = in.value<uint64_t>();
    for (uint64_t i = 0; i < count; ++i) {
      Waiting& waiting = waiting_.emplace_back();
      waiting.time = in.value<Time>();
      const uint64_t patterns = in.value<uint64_t>();
      for (uint64_t k = 0; k < patterns; ++k) waiting.patterns.emplace_back().load(in);
    }
    free_ = in.array<uint32_t>();
  }

 private:
  std::vector<Waiting> waiting_;
  std::vector<uint32_t> free_;
};

}  // namespace streamjoin
