// Stats and snapshots of BinaryOperator.

#include "streamjoin/engine/binary_operator.h"

namespace streamjoin {

OperatorStats BinaryOperator::stats() {
  free_dead_rows();
  OperatorStats stats;
  for (const Side side : {kLeft, kRight}) {
    const WindowState& state = join_->state(side);
    stats.counters[side] = join_->counters(side);
    stats.state_rows[side] = state.live_rows();
    stats.state_keys[side] = state.lists().size();
    stats.dead_rows[side] = state.dead_rows();
    stats.promises_held[side] = join_->promises(side).held() + keys_.patterns(side).size();
    stats.clocks[side] = join_->clock(side);
  }
  stats.rows_out = join_->rows_out();
  for (size_t kind = 0; kind < kPropagationKinds; ++kind) {
    stats.punctuations_out[kind] =
        join_->punctuations_out(static_cast<PropagationKind>(kind)) + patterns_out_[kind];
  }
  stats.dictionary_entries = keys_.entries();
  stats.state_bytes =
      join_->memory_bytes() + keys_.memory_bytes() + (disorder_ ? disorder_->memory_bytes() : 0);
  return stats;
}

void BinaryOperator::free_dead_rows() {
  for (const Side side : {kLeft, kRight}) {
    join_->state(side).sweep_all();
    if (!keys_.direct()) keys_.let_go(join_->state(side).take_released_keys(), *join_);
  }
}

std::string BinaryOperator::validate() const {
  if (const std::string broken = keys_.validate(); !broken.empty()) return broken;
  if (disorder_) {
    if (const std::string broken = disorder_->validate(); !broken.empty()) return broken;
  }
  return join_->validate();
}

std::string BinaryOperator::save() {
  free_dead_rows();
  ArchiveWriter out;
  keys_.save(out);
  join_->save(out);
  if (disorder_) save_waiting(out);
  for (const auto& pending : pending_) {
    out.value<uint64_t>(pending.size());
    for (const PendingPattern& pattern : pending) {
      pattern.pattern.save(out);
      out.array(std::vector<Code>(pattern.open.begin(), pattern.open.end()));
      out.value(pattern.time);
      out.value(pattern.until);
    }
  }
  for (const uint64_t count : patterns_out_) out.value(count);
  return out.take();
}

void BinaryOperator::load(std::string_view bytes) {
  ArchiveReader in(bytes);
  keys_.load(in);
  join_->load(in);
  if (disorder_) load_waiting(in);
  keys_.after_load(*join_);
  for (auto& pending : pending_) {
    pending.clear();
    const uint64_t count = in.value<uint64_t>();
    for (uint64_t i = 0; i < count; ++i) {
      PendingPattern pattern;
      pattern.pattern.load(in);
      keys_.check_loaded(pattern.pattern);
      const auto open = in.array<Code>();
      pattern.open.insert(open.begin(), open.end());
      pattern.time = in.value<Time>();
      pattern.until = in.value<Time>();
      pending.push_back(std::move(pattern));
    }
  }
  for (uint64_t& count : patterns_out_) count = in.value<uint64_t>();
  if (!in.at_end()) throw DamagedArchive("snapshot goes on after its end");
}

}  // namespace streamjoin
