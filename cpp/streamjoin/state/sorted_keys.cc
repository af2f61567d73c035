#include "streamjoin/state/sorted_keys.h"

#include <iterator>

namespace streamjoin {

void SortedKeys::build(std::vector<Code> keys) {
  drop();
  kept_ = true;
  allowance_ = keys.size() + kSlack;
  std::sort(keys.begin(), keys.end());
  if (!keys.empty()) runs_.push_back(std::move(keys));
}

void SortedKeys::sort_fresh() {
  if (fresh_.empty()) return;
  std::sort(fresh_.begin(), fresh_.end());
  runs_.push_back(std::exchange(fresh_, {}));
  while (runs_.size() > 1 && 2 * runs_.back().size() > runs_[runs_.size() - 2].size()) {
    const std::vector<Code> last = std::move(runs_.back());
    runs_.pop_back();
    std::vector<Code> merged;
    merged.reserve(runs_.back().size() + last.size());
    std::set_union(runs_.back().begin(), runs_.back().end(), last.begin(), last.end(),
                   std::back_inserter(merged));
    runs_.back() = std::move(merged);
  }
}

size_t SortedKeys::held() const {
  size_t held = fresh_.size();
  for (const std::vector<Code>& run : runs_) held += run.size();
  return held;
}

bool SortedKeys::contains(Code key) const {
  for (const std::vector<Code>& run : runs_) {
    if (std::binary_search(run.begin(), run.end(), key)) return true;
  }
  return std::find(fresh_.begin(), fresh_.end(), key) != fresh_.end();
}

size_t SortedKeys::memory_bytes() const {
  size_t bytes = fresh_.capacity() * sizeof(Code);
  for (const std::vector<Code>& run : runs_) bytes += run.capacity() * sizeof(Code);
  return bytes;
}

std::string SortedKeys::validate() const {
  if (!kept_ && held() > 0) return "sorted keys: keys are held that nobody asked for";
  if (fresh_.size() > allowance_) return "sorted keys: more keys were added than are worth keeping";
  for (size_t at = 0; at < runs_.size(); ++at) {
    if (!std::is_sorted(runs_[at].begin(), runs_[at].end())) return "sorted keys: a run is not sorted";
    if (at > 0 && 2 * runs_[at].size() > runs_[at - 1].size())
      return "sorted keys: a run is longer than half the one before";
  }
  return {};
}

}  // namespace streamjoin
