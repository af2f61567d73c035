// What MultiPunctuations hold: their size, their bytes in a snapshot.

#include "streamjoin/join/multi_punctuations.h"

namespace streamjoin {
namespace {

size_t bytes_beside(const KeyPattern& pattern) {
  size_t bytes = pattern.attributes.capacity() * sizeof(AttributePattern);
  for (const AttributePattern& one : pattern.attributes) bytes += one.low.size() + one.high.size();
  return bytes;
}

}  // namespace

size_t MultiPunctuations::memory_bytes() const {
  size_t bytes = witnesses_.memory_bytes() + queue_.capacity() * sizeof(Queued);
  for (const StreamPromises& promises : promises_) bytes += promises.memory_bytes();
  for (const PendingOfStream& of_stream : pending_) {
    for (const auto& [set, by_codes] : of_stream.constants) {
      bytes += by_codes.bucket_count() * sizeof(void*);
      for (const auto& [codes, pending] : by_codes) {
        bytes += 2 * sizeof(void*) + sizeof(codes) + sizeof(pending);
        bytes += codes.capacity() * sizeof(Code) + bytes_beside(pending.pattern);
      }
    }
    bytes += of_stream.others.capacity() * sizeof(Pending);
    for (const Pending& pending : of_stream.others) bytes += bytes_beside(pending.pattern);
  }
  return bytes;
}

std::string MultiPunctuations::validate() {
  for (const StreamPromises& promises : promises_) {
    if (std::string broken = promises.validate(); !broken.empty()) return broken;
  }
  if (std::string broken = witnesses_.validate(); !broken.empty()) return broken;
  if (options_.purge != PurgeMode::kEager || ended_) return {};
  for (uint32_t stream = 0; stream < parts_.states.size(); ++stream) {
    for (const StreamState::Timed& entry : parts_.states[stream]->all()) {
      if (!parts_.states[stream]->is_live(entry.node)) continue;
      if (chain_.may_go(stream, entry.node)) return "join: a row is stored that punctuations let go";
      bool live = true;
      witnesses_.for_each_member({stream, entry.node}, [&](Member member) {
        live &= parts_.states[member.stream]->is_live(member.node);
      });
      if (!live) return "join: a row waits for one that has left";
    }
  }
  return {};
}

void MultiPunctuations::save(ArchiveWriter& out) const {
  out.value<uint8_t>(ended_);
  for (size_t stream = 0; stream < promises_.size(); ++stream) {
    promises_[stream].save(out);
    out.value<uint8_t>(clusters_[stream].has_value());
    if (clusters_[stream]) clusters_[stream]->save(out);
    std::vector<const Pending*> pending;
    for (const auto& [set, by_codes] : pending_[stream].constants) {
      for (const auto& [codes, each] : by_codes) pending.push_back(&each);
    }
    for (const Pending& each : pending_[stream].others) pending.push_back(&each);
    out.value<uint64_t>(pending.size());
    for (const Pending* each : pending) {
      each->pattern.save(out);
      out.value<uint64_t>(each->open);
      out.value(each->until);
    }
  }
}

void MultiPunctuations::load(ArchiveReader& in) {
  ended_ = in.value<uint8_t>() != 0;
  const auto load_pattern = [&](size_t stream) {
    KeyPattern pattern;
    pattern.load(in);
    if (pattern.attributes.size() != parts_.classes[stream].size() || pattern.is_any())
      throw DamagedArchive("a promise of another number of attributes");
    return pattern;
  };
  for (size_t stream = 0; stream < promises_.size(); ++stream) {
    promises_[stream].load(in);
    if (in.value<uint8_t>() != 0) clusters_[stream] = load_pattern(stream);
    for (uint64_t left = in.value<uint64_t>(); left > 0; --left) {
      Pending pending{load_pattern(stream), 0, 0};
      pending.open = in.value<uint64_t>();
      pending.until = in.value<Time>();
      if (pending.open == 0) throw DamagedArchive("a promise waits for no row");
      wait_to_close(stream, std::move(pending));
    }
  }
  for (const StreamPromises& promises : promises_) held_then_ += promises.held();
  if (options_.purge != PurgeMode::kEager || ended_) return;
  queue_all();
  judge_queued();
}

}  // namespace streamjoin
