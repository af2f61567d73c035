#include "streamjoin/join/chained_purge.h"

#include <algorithm>
#include <bit>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

uint64_t bit(size_t stream) {
  return uint64_t{1} << stream;
}
size_t lowest(uint64_t streams) {
  return static_cast<size_t>(std::countr_zero(streams));
}

}  // namespace

ChainedPurge::ChainedPurge(const WindowMatrix& matrix, const std::vector<std::vector<size_t>>& classes,
                           std::span<const StreamState* const> states, const std::vector<Time>& clocks,
                           const std::vector<StreamPromises>& promises)
    : matrix_(matrix),
      classes_(classes),
      states_(states),
      clocks_(clocks),
      promises_(promises),
      in_window_(classes.size()),
      times_(classes.size()),
      candidates_(classes.size() + 1) {
  if (classes.size() > kMostStreams) throw UsageError("punctuations are for joins of at most 64 streams");
  for (size_t stream = 0; stream < classes.size(); ++stream) {
    for (const size_t number : classes[stream]) {
      if (number >= streams_of_class_.size()) streams_of_class_.resize(number + 1);
      streams_of_class_[number] |= bit(stream);
    }
    for (size_t other = 0; other < classes.size(); ++other) {
      if (other != stream && (matrix.hull(stream, other) != kEnd || matrix.hull(other, stream) != kEnd))
        in_window_[stream] |= bit(other);
    }
  }
  values_.resize(streams_of_class_.size());
  known_.resize(streams_of_class_.size());
}

bool ChainedPurge::may_go(size_t stream, Time time, std::span<const Code> keys) {
  witness_.clear();
  bind(stream, time);
  for (size_t position = 0; position < keys.size(); ++position)
    bind_key(classes_[stream][position], keys[position]);
  const size_t streams = classes_.size();
  const Streams all = streams == kMostStreams ? ~Streams{0} : bit(streams) - 1;
  const Outlook outlook = judge(all & ~bit(stream));
  unbind(stream);
  return outlook != Outlook::kOpen;
}

bool ChainedPurge::may_go(size_t stream, uint32_t node) {
  const StreamState& state = *states_[stream];
  std::vector<Code> keys(state.classes());
  for (size_t position = 0; position < keys.size(); ++position) keys[position] = state.key(position, node);
  return may_go(stream, state.time(node), keys);
}

void ChainedPurge::bind(size_t stream, Time time) {
  bound_.push_back(stream);
  times_[stream] = time;
}

void ChainedPurge::bind_key(size_t number, Code key) {
  if (known_[number]++ == 0) values_[number] = key;
}

void ChainedPurge::unbind(size_t stream) {
  bound_.pop_back();
  for (const size_t number : classes_[stream]) --known_[number];
}

// The streams that are not bound, part by part: nothing ties the parts to each other any more. A part that
// can become nothing ends the tuple, whatever the others may become.
ChainedPurge::Outlook ChainedPurge::judge(Streams open) {
  const size_t before = witness_.size();
  Outlook whole = Outlook::kPast;
  while (open != 0) {
    const Streams part = linked_with(lowest(open), open);
    open &= ~part;
    const Outlook outlook = judge_linked(part);
    if (outlook == Outlook::kNone) {
      witness_.resize(before);
      return Outlook::kNone;
    }
    if (outlook == Outlook::kOpen) whole = Outlook::kOpen;
  }
  return whole;
}

ChainedPurge::Outlook ChainedPurge::judge_linked(Streams open) {
  size_t stream = 0;
  Streams untried = open;
  for (; untried != 0; untried &= untried - 1) {
    stream = lowest(untried);
    if (closed(stream)) break;
  }
  if (untried == 0) return Outlook::kOpen;

  const size_t depth = bound_.size();
  collect(stream, candidates_[depth]);
  const size_t before = witness_.size();
  Outlook found = Outlook::kNone;
  for (size_t i = candidates_[depth].size(); i-- > 0;) {
    const uint32_t node = candidates_[depth][i];
    const size_t mark = witness_.size();
    witness_.push_back({static_cast<uint32_t>(stream), node});
    bind(stream, states_[stream]->time(node));
    for (size_t position = 0; position < classes_[stream].size(); ++position)
      bind_key(classes_[stream][position], states_[stream]->key(position, node));
    const Outlook outlook = judge(open & ~bit(stream));
    unbind(stream);
    if (outlook == Outlook::kOpen) {
      witness_.erase(witness_.begin() + static_cast<ptrdiff_t>(before),
                     witness_.begin() + static_cast<ptrdiff_t>(mark));
      return Outlook::kOpen;
    }
    if (outlook == Outlook::kPast && found == Outlook::kNone) {
      found = Outlook::kPast;  // its rows stay noted: a witness needs one complete way through this part
    } else {
      witness_.resize(mark);
    }
  }
  return found;
}

ChainedPurge::Streams ChainedPurge::linked_with(size_t stream, Streams open) const {
  Streams linked = bit(stream);
  if (linked == open) return linked;
  for (Streams untried = linked; untried != 0;) {
    const size_t next = lowest(untried);
    untried &= untried - 1;
    Streams more = in_window_[next];
    for (const size_t number : classes_[next]) {
      if (known_[number] == 0) more |= streams_of_class_[number];
    }
    more &= open & ~linked;
    linked |= more;
    untried |= more;
  }
  return linked;
}

bool ChainedPurge::closed(size_t stream) {
  const Time clock = clocks_[stream];
  if (clock == kEnd) return true;
  if (clock != kBeginning) {
    for (const size_t other : bound_) {
      const Duration reach = matrix_.hull(other, stream);
      if (reach != kEnd && clock > add_saturating(times_[other], reach)) return true;
    }
  }
  if (!promises_[stream].any()) return false;
  const std::vector<size_t>& classes = classes_[stream];
  StreamPromises::Positions known = 0;
  codes_.resize(classes.size());
  for (size_t position = 0; position < classes.size(); ++position) {
    if (known_[classes[position]] == 0) continue;
    known |= StreamPromises::Positions{1} << position;
    codes_[position] = values_[classes[position]];
  }
  return known != 0 && promises_[stream].covers(codes_, known);
}

void ChainedPurge::collect(size_t stream, std::vector<uint32_t>& nodes) const {
  nodes.clear();
  const StreamState& state = *states_[stream];
  const std::vector<size_t>& classes = classes_[stream];
  const auto add = [&](uint32_t node) {
    if (joins(stream, node)) nodes.push_back(node);
  };
  for (size_t position = 0; position < classes.size(); ++position) {
    if (known_[classes[position]] == 0) continue;
    rows_with(state, position, values_[classes[position]], add);
    return;
  }
  Period period;
  for (const size_t other : bound_) {
    const Duration after = matrix_.hull(other, stream);
    const Duration before = matrix_.hull(stream, other);
    if (after != kEnd) period.last = std::min(period.last, add_saturating(times_[other], after));
    if (before != kEnd) period.first = std::max(period.first, subtract_saturating(times_[other], before));
  }
  if (period.empty()) return;
  for (const StreamState::Timed& entry : state.between(period.first, period.last)) {
    if (state.is_live(entry.node)) add(entry.node);
  }
}

bool ChainedPurge::joins(size_t stream, uint32_t node) const {
  const StreamState& state = *states_[stream];
  const std::vector<size_t>& classes = classes_[stream];
  for (size_t position = 0; position < classes.size(); ++position) {
    if (known_[classes[position]] != 0 && state.key(position, node) != values_[classes[position]])
      return false;
  }
  const Time time = state.time(node);
  return std::ranges::all_of(bound_, [&](size_t other) {
    const Duration after = matrix_.hull(other, stream);
    const Duration before = matrix_.hull(stream, other);
    return (after == kEnd || time <= add_saturating(times_[other], after)) &&
           (before == kEnd || times_[other] <= add_saturating(time, before));
  });
}

}  // namespace streamjoin
