#include "streamjoin/join/multi_punctuations.h"

#include <algorithm>

#include "streamjoin/base/check.h"
#include "streamjoin/base/hash.h"
#include "streamjoin/join/class_pattern.h"

namespace streamjoin {
namespace {

std::vector<StreamPromises> promises_for(const PunctuationOptions& options, const JoinParts& parts) {
  std::vector<StreamPromises> promises;
  for (size_t stream = 0; stream < parts.classes.size(); ++stream) {
    std::vector<const KeyDictionary*> dictionaries;
    for (const size_t number : parts.classes[stream]) dictionaries.push_back(parts.dictionaries[number]);
    promises.emplace_back(std::move(dictionaries), options.lifespans[stream]);
  }
  return promises;
}

PunctuationOptions checked(PunctuationOptions options, const JoinParts& parts) {
  const size_t streams = parts.classes.size();
  if (options.lifespans.empty()) options.lifespans.assign(streams, kEnd);
  if (options.implied.empty()) options.implied.resize(streams);
  if (options.lifespans.size() != streams || options.implied.size() != streams)
    throw UsageError("lifespans and implied promises are needed for each stream");
  for (size_t stream = 0; stream < streams; ++stream) {
    for (const size_t position : options.implied[stream].positions) {
      if (position >= parts.classes[stream].size())
        throw UsageError("a row implies a promise on an attribute that is not there");
    }
  }
  return options;
}

}  // namespace

MultiPunctuations::MultiPunctuations(PunctuationOptions options, JoinParts parts)
    : options_(checked(std::move(options), parts)),
      parts_(std::move(parts)),
      promises_(promises_for(options_, parts_)),
      chain_(parts_.matrix, parts_.classes, parts_.readable, parts_.clocks, promises_),
      witnesses_(parts_.classes.size()),
      clusters_(parts_.classes.size()),
      pending_(parts_.classes.size()) {
  size_t open = 0;
  size_t bounded = 0;
  for (size_t i = 0; i < parts_.classes.size(); ++i) {
    for (size_t j = 0; j < parts_.classes.size(); ++j) {
      if (i != j) ++(parts_.matrix.hull(i, j) == kEnd ? open : bounded);
    }
  }
  mixed_ = open > 0 && bounded > 0;
}

KeyPattern MultiPunctuations::implied_pattern(size_t stream, std::span<const Code> keys) const {
  const std::vector<size_t>& classes = parts_.classes[stream];
  KeyPattern pattern{std::vector<AttributePattern>(classes.size())};
  std::string scratch;
  for (const size_t position : options_.implied[stream].positions) {
    pattern.attributes[position] = AttributePattern::constant(
        std::string(bytes_of(keys[position], parts_.dictionaries[classes[position]], scratch)));
  }
  return pattern;
}

void MultiPunctuations::enter_cluster(size_t stream, const ArrivingRow& row) {
  KeyPattern pattern = implied_pattern(stream, row.keys);
  if (clusters_[stream] == pattern) return;
  const std::optional<KeyPattern> left = std::exchange(clusters_[stream], std::move(pattern));
  if (left) punctuate(stream, *left, row.time);
}

void MultiPunctuations::take_row(size_t stream, const ArrivingRow& row) {
  if (ended_) {
    ++parts_.counters[stream].discarded_on_the_fly;
    return;
  }
  now_ = row.time;
  const Implies kind = options_.implied[stream].kind;
  if (kind == Implies::kClustered) enter_cluster(stream, row);
  if (row.can_match_later) {
    if (options_.purge != PurgeMode::kOff && chain_.may_go(stream, row.time, row.keys)) {
      ++parts_.counters[stream].discarded_on_the_fly;
    } else {
      const uint32_t node = parts_.states[stream]->insert(row.time, row.ref, row.keys, row.values);
      note_stored(stream, row.keys);
      if (options_.purge == PurgeMode::kEager) watch({static_cast<uint32_t>(stream), node}, chain_.witness());
    }
  }
  if (kind == Implies::kUnique) punctuate(stream, implied_pattern(stream, row.keys), row.time);
}

void MultiPunctuations::punctuate(size_t stream, const KeyPattern& pattern, Time time) {
  StreamPromises& promises = promises_[stream];
  if (ended_ || parts_.clocks[stream] == kEnd || !promises.takes(time, parts_.clocks[stream])) return;
  now_ = time;
  // What was promised before closes nothing new, unless it was a range that still waits for other values.
  const bool known = promises.lifespan() == kEnd && promises.contains(pattern);
  if (known && pending_[stream].others.empty()) return;
  if (!known) promises.remember(pattern, time);
  {
    punctuating_ = stream;
    const ClassPattern compiled(pattern, parts_.classes[stream], parts_.dictionaries);
    if (options_.purge == PurgeMode::kEager) {
      queue_concerned(stream, compiled);
      judge_queued();
    }
    close_or_wait(stream, pattern, compiled, time);
    punctuating_ = kNobody;
  }
  purge_some();
  if (++since_forgetting_ >= held_then_ + kLeastHeld) forget_answered();
}

void MultiPunctuations::clock_raised(size_t stream, Time time) {
  if (ended_) return;
  now_ = time;
  const Time clock = parts_.clocks[stream];
  promises_[stream].expire(clock);
  if (options_.purge == PurgeMode::kOff) return;
  if (clock == kEnd) {
    promises_[stream].clear();
    pending_[stream] = {};
    clusters_[stream].reset();
    queue_all();
    judge_queued();
  } else if (options_.purge == PurgeMode::kEager) {
    for (const Member owner : witnesses_.due(stream, clock)) queue(owner);
    judge_queued();
  } else if (mixed_) {
    purge_some();
  }
}

void MultiPunctuations::before_invalidation(size_t stream, Time limit) {
  const StreamState& state = *parts_.states[stream];
  for (const StreamState::Timed& entry : state.all()) {
    if (entry.time >= limit) break;
    if (state.is_live(entry.node)) note_left(stream, entry.node);
  }
}

void MultiPunctuations::end() {
  ended_ = true;
  witnesses_.clear();
  for (size_t stream = 0; stream < promises_.size(); ++stream) {
    promises_[stream].clear();
    pending_[stream] = {};
    clusters_[stream].reset();
  }
}

// A promise of `stream` closes witnesses that know the values it speaks of. Some row of such a witness, of
// another stream, has the value of the first condition.
void MultiPunctuations::queue_concerned(size_t stream, const ClassPattern& pattern) {
  const ClassCondition& first = pattern.first();
  for (size_t other = 0; other < parts_.classes.size(); ++other) {
    if (other == stream) continue;
    const std::vector<size_t>& classes = parts_.classes[other];
    const auto at = static_cast<size_t>(std::ranges::find(classes, first.number) - classes.begin());
    if (at == classes.size()) continue;
    ClassPattern::rows(*parts_.states[other], at, first, [&](uint32_t node) {
      const Member row{static_cast<uint32_t>(other), node};
      if (closes_witness(stream, pattern, row)) queue(row);
      witnesses_.for_each_kept(row, [&](Member owner) {
        if (closes_witness(stream, pattern, owner)) queue(owner);
      });
    });
  }
}

bool MultiPunctuations::closes_witness(size_t stream, const ClassPattern& pattern, Member owner) const {
  size_t met = 0;
  bool bound = owner.stream == stream;
  uint64_t decided = 0;  // conditions
  const auto look = [&](Member row) {
    bound |= row.stream == stream;
    const std::vector<size_t>& classes = parts_.classes[row.stream];
    for (size_t i = 0; i < pattern.conditions().size(); ++i) {
      const ClassCondition& condition = pattern.conditions()[i];
      const auto at = static_cast<size_t>(std::ranges::find(classes, condition.number) - classes.begin());
      if (at == classes.size() || (decided >> i & 1) != 0) continue;
      decided |= uint64_t{1} << i;
      met += condition.matches(parts_.states[row.stream]->key(at, row.node)) ? 1 : 0;
    }
  };
  look(owner);
  witnesses_.for_each_member(owner, look);
  return !bound && met == pattern.conditions().size();
}

void MultiPunctuations::queue_all() {
  for (uint32_t stream = 0; stream < parts_.states.size(); ++stream) {
    for (const StreamState::Timed& entry : parts_.states[stream]->all()) {
      if (parts_.states[stream]->is_live(entry.node)) queue({stream, entry.node});
    }
  }
}

void MultiPunctuations::judge_queued() {
  while (!queue_.empty()) {
    const auto [row, version] = queue_.back();
    queue_.pop_back();
    if (witnesses_.version(row) != version || !parts_.states[row.stream]->is_live(row.node)) continue;
    if (chain_.may_go(row.stream, row.node)) {
      leave(row);
    } else if (options_.purge == PurgeMode::kEager) {
      watch(row, chain_.witness());
    }
  }
}

void MultiPunctuations::watch(Member owner, std::span<const Member> members) {
  witnesses_.set(owner, members);
  for (size_t stream = 0; stream < parts_.states.size(); ++stream) {
    Time closed_after = kEnd;
    bool bound = false;
    const auto look = [&](Member row) {
      bound |= row.stream == stream;
      const Duration reach = bound ? kEnd : parts_.matrix.hull(row.stream, stream);
      if (reach == kEnd) return;
      closed_after = std::min(closed_after, add_saturating(parts_.states[row.stream]->time(row.node), reach));
    };
    look(owner);
    for (const Member member : members) look(member);
    if (!bound && closed_after != kEnd) witnesses_.wait(stream, closed_after, owner);
  }
}

// Every witness with this row in it is closed, too: its owner is judged anew.
void MultiPunctuations::leave(Member row) {
  witnesses_.for_each_kept(row, [&](Member owner) { queue(owner); });
  witnesses_.drop(row);
  StreamState& state = *parts_.states[row.stream];
  const Time limit = parts_.matrix.forget_before(row.stream, parts_.clocks);
  const bool by_time = limit != kEnd && state.time(row.node) < limit;
  SideCounters& counters = parts_.counters[row.stream];
  ++(by_time ? counters.invalidated : counters.purged);
  note_left(row.stream, row.node);
  state.purge(row.node);
}

void MultiPunctuations::purge_some() {
  if (options_.purge != PurgeMode::kLazy) return;
  if (events_ > 0) {
    --events_;
    return;
  }
  queue_all();
  judge_queued();
  size_t left = 0;
  for (const StreamState* state : parts_.states) left += state->live_rows();
  events_ = left / 4 + kLeastBatch;
}

}  // namespace streamjoin
