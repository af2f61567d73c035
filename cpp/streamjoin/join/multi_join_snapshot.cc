// Sizes, validation and snapshots of MultiJoin.

#include <numeric>

#include "streamjoin/join/multi_join.h"

namespace streamjoin {

size_t MultiJoin::memory_bytes() const {
  return std::accumulate(states_.begin(), states_.end(), size_t{0},
                         [](size_t sum, const auto& state) { return sum + state->memory_bytes(); }) +
         (punctuations_ == nullptr ? 0 : punctuations_->memory_bytes()) +
         (pipeline_ == nullptr ? 0 : pipeline_->memory_bytes());
}

std::string MultiJoin::validate() const {
  for (size_t stream = 0; stream < streams(); ++stream) {
    if (const std::string broken = states_[stream]->validate(); !broken.empty()) return broken;
    const std::span<const StreamState::Timed> rows = states_[stream]->all();
    if (forget_before_[stream] != matrix_.forget_before(stream, clocks_))
      return "join: what may be forgotten is not what the clocks say";
    if (!rows.empty() && rows.front().time < forget_before_[stream])
      return "join: a row is stored that nothing can reach";
  }
  if (pipeline_ != nullptr) {
    if (const std::string broken = pipeline_->validate(); !broken.empty()) return broken;
  }
  if (punctuations_ != nullptr) return punctuations_->validate();
  return {};
}

void MultiJoin::save(ArchiveWriter& out) {
  free_dead_rows();
  out.value<uint64_t>(streams());
  for (size_t stream = 0; stream < streams(); ++stream) {
    states_[stream]->save(out);
    const SideCounters& c = counters_[stream];
    out.array(std::vector<uint64_t>{c.rows_in, c.punctuations_in, c.purged, c.invalidated,
                                    c.discarded_on_the_fly, c.dropped_after_propagation, c.violations,
                                    c.late});
    out.value(clocks_[stream]);
    out.value(ended_[stream]);
  }
  order_.save(out);
  out.value<uint8_t>(output_ended_);
  out.value(rows_out_);
  for (const uint64_t count : punctuations_out_) out.value(count);
  if (punctuations_ != nullptr) punctuations_->save(out);
  if (pipeline_ != nullptr) pipeline_->save(out);
}

void MultiJoin::load(ArchiveReader& in) {
  if (in.value<uint64_t>() != streams()) throw DamagedArchive("a snapshot of another number of streams");
  for (size_t stream = 0; stream < streams(); ++stream) {
    states_[stream]->load(in);
    const auto c = in.array<uint64_t>();
    if (c.size() != 8) throw DamagedArchive("counters of another version");
    counters_[stream] = {c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]};
    clocks_[stream] = in.value<Time>();
    ended_[stream] = in.value<uint8_t>();
  }
  for (size_t stream = 0; stream < streams(); ++stream)
    forget_before_[stream] = matrix_.forget_before(stream, clocks_);
  order_.load(in);
  output_ended_ = in.value<uint8_t>() != 0;
  rows_out_ = in.value<uint64_t>();
  for (uint64_t& count : punctuations_out_) count = in.value<uint64_t>();
  if (punctuations_ != nullptr) punctuations_->load(in);
  if (pipeline_ != nullptr) pipeline_->load(in);
}

}  // namespace streamjoin
