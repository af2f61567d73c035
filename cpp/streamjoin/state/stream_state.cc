#include "streamjoin/state/stream_state.h"

#include <algorithm>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

bool earlier(const StreamState::Timed& entry, Time time) {
  return entry.time < time;
}
bool later(Time time, const StreamState::Timed& entry) {
  return time < entry.time;
}

}  // namespace

StreamState::StreamState(StreamStateOptions options) : options_(std::move(options)) {
  for (const KeyDictionary* dictionary : options_.dictionaries) interned_ |= dictionary != nullptr;
  for (size_t position = 1; position < classes(); ++position) {
    links_.push_back(std::make_unique<Slab<ValueLink>>());
  }
  if (!options_.indexed) columns_ = TimeColumns(classes(), options_.value_slots);
  for (size_t slot = 0; slot < options_.value_slots && (options_.indexed || options_.values_by_node);
       ++slot) {
    values_.push_back(std::make_unique<Slab<NumericValue>>());
  }
  for (size_t position = 0; position < classes() && options_.indexed; ++position) {
    indexes_.push_back(std::make_unique<INodeIndex>());
  }
}

uint32_t StreamState::allocate(Time time, RowRef row, std::span<const Code> keys,
                               std::span<const NumericValue> values) {
  const uint32_t node = nodes_.allocate();
  nodes_[node].start(time, keys.empty() ? 0 : keys[0], row);
  if (!links_.empty() || !values_.empty()) allocate_beside(node, keys, values);
  return node;
}

// Slabs that see the same calls hand out the same indices.
void StreamState::allocate_beside(uint32_t node, std::span<const Code> keys,
                                  std::span<const NumericValue> values) {
  for (size_t position = 1; position < keys.size(); ++position) {
    Slab<ValueLink>& links = *links_[position - 1];
    SJ_CHECK(links.allocate() == node, "the slabs of a stream's state are out of step");
    links[node] = {keys[position], kNoNode, 0};
  }
  for (size_t slot = 0; slot < values_.size(); ++slot) {
    SJ_CHECK(values_[slot]->allocate() == node, "the slabs of a stream's state are out of step");
    (*values_[slot])[node] = values[slot];
  }
}

void StreamState::append_to_value_lists(uint32_t node) {
  for (size_t position = 0; position < indexes_.size(); ++position) {
    bool added;
    INode& list = indexes_[position]->find_or_add(key(position, node), added);
    if (added) {
      list.head = node;
    } else {
      set_next(position, list.tail(), node);
    }
    list.set_tail(node);
  }
}

uint32_t StreamState::insert(Time time, RowRef row, std::span<const Code> keys,
                             std::span<const NumericValue> values) {
  const uint32_t node = allocate(time, row, keys, values);
  append_to_value_lists(node);
  for (size_t position = 0; position < keys.size() && interned_; ++position) {
    if (options_.dictionaries[position] != nullptr)
      options_.dictionaries[position]->reference(keys[position]);
  }
  if (time_list_.size() == head_ || time_list_.back().time <= time) {
    if (!options_.indexed) columns_.insert(time_list_.size(), keys, values);
    time_list_.push_back({time, node});
  } else {
    const auto begin = time_list_.begin() + static_cast<ptrdiff_t>(head_);
    const auto place = std::upper_bound(begin, time_list_.end(), time, later);
    if (!options_.indexed) columns_.insert(static_cast<size_t>(place - time_list_.begin()), keys, values);
    time_list_.insert(place, {time, node});
  }
  in_order_ &= newest_ <= time;
  newest_ = std::max(newest_, time);
  ++live_;
  ++inserted_;
  last_inserted_ = node;
  if (row.batch >= batch_rows_.size()) batch_rows_.resize(row.batch + 1);
  ++batch_rows_[row.batch];
  return node;
}

std::span<const StreamState::Timed> StreamState::between(Time first, Time last) const {
  const std::span<const Timed> list = all();
  const auto begin = std::lower_bound(list.begin(), list.end(), first, earlier);
  const auto end = std::upper_bound(begin, list.end(), last, later);
  return {begin, end};
}

// How many entries from the front satisfy `before`, which holds for a prefix: gallops from the guess.
template <typename Before>
size_t StreamState::boundary(uint64_t guess, Before before) const {
  size_t low = head_;
  size_t high = time_list_.size();
  const size_t from = guess < dropped_ ? low : std::clamp<size_t>(guess - dropped_, low, high);
  if (from < high && before(time_list_[from])) {
    low = from + 1;
    for (size_t step = 1; step <= high - low; step *= 2) {
      if (!before(time_list_[low + step - 1])) {
        high = low + step - 1;
        break;
      }
      low += step;
    }
  } else {
    high = from;
    for (size_t step = 1; step <= high - low; step *= 2) {
      if (before(time_list_[high - step])) {
        low = high - step + 1;
        break;
      }
      high -= step;
    }
  }
  const auto begin = time_list_.begin();
  return static_cast<size_t>(std::partition_point(begin + static_cast<ptrdiff_t>(low),
                                                  begin + static_cast<ptrdiff_t>(high), before) -
                             begin);
}

// Often nothing lies outside on one side, for what does has been forgotten.
StreamState::Places StreamState::places_between(Time first, Time last, Cursor& cursor) const {
  if (head_ == time_list_.size()) return all_places();
  size_t begin = head_;
  size_t end = time_list_.size();
  if (time_list_[begin].time < first)
    begin = boundary(cursor.begin, [&](const Timed& entry) { return entry.time < first; });
  if (time_list_[end - 1].time > last)
    end = boundary(std::max<uint64_t>(cursor.end, begin + dropped_),
                   [&](const Timed& entry) { return entry.time <= last; });
  cursor = {begin + dropped_, end + dropped_};
  return {begin, std::max(begin, end)};
}

StreamState::Places StreamState::narrowed(Places places, Time first, Time last) const {
  if (places.begin == places.end ||
      (first <= time_list_[places.begin].time && time_list_[places.end - 1].time <= last))
    return places;
  const auto from = time_list_.begin() + static_cast<ptrdiff_t>(places.begin);
  const auto to = time_list_.begin() + static_cast<ptrdiff_t>(places.end);
  const auto begin = std::lower_bound(from, to, first, earlier);
  const auto end = std::upper_bound(begin, to, last, later);
  return {static_cast<size_t>(begin - time_list_.begin()), static_cast<size_t>(end - time_list_.begin())};
}

void StreamState::drop_head() {
  time_list_.erase(time_list_.begin(), time_list_.begin() + static_cast<ptrdiff_t>(head_));
  if (!options_.indexed) columns_.erase_front(head_);
  dropped_ += head_;
  head_ = 0;
}

void StreamState::take_out(uint32_t node) {
  TNode& row = nodes_[node];
  row.mark(TNode::kDead);
  dead_.push_back(node);
  --live_;
  const uint32_t batch = row.row().batch;
  if (--batch_rows_[batch] == 0) empty_batches_.push_back(batch);
}

size_t StreamState::invalidate_before(Time limit) {
  size_t taken = 0;
  for (; head_ < time_list_.size() && time_list_[head_].time < limit; ++head_) {
    if (is_live(time_list_[head_].node)) {
      take_out(time_list_[head_].node);
      ++taken;
    } else {
      --purged_listed_;
    }
  }
  if (head_ > time_list_.size() / 2 + kSlackRows || head_ == time_list_.size()) {
    drop_head();
    if (time_list_.capacity() > 8 * (time_list_.size() + kSlackRows)) {
      time_list_.shrink_to_fit();
      columns_.shrink_to_fit();
    }
  }
  return taken;
}

Time StreamState::oldest() {
  for (; head_ < time_list_.size() && !is_live(time_list_[head_].node); ++head_) --purged_listed_;
  return head_ == time_list_.size() ? kEnd : time_list_[head_].time;
}

void StreamState::purge(uint32_t node) {
  take_out(node);
  ++purged_listed_;
}

size_t StreamState::purge_key(size_t position, Code code) {
  std::vector<uint32_t> concerned;
  if (options_.indexed) {
    look(position, code, [&](uint32_t node) { concerned.push_back(node); });
  } else {
    for (const Timed& entry : all()) {
      if (is_live(entry.node) && key(position, entry.node) == code) concerned.push_back(entry.node);
    }
  }
  for (const uint32_t node : concerned) purge(node);
  return concerned.size();
}

size_t StreamState::purge_all() {
  const size_t before = live_;
  for (const Timed& entry : all()) {
    if (is_live(entry.node)) purge(entry.node);
  }
  return before;
}

// The first dead row of a key cleans its whole list, so each list is walked once: in all no more steps than
// there are rows, of which the dead are a fixed share.
void StreamState::unlink_dead(size_t position, Code code) {
  INode* list = indexes_[position]->find(code);
  uint32_t last_live = kNoNode;
  uint32_t at = list->head;
  if (at == list->tail()) {  // the dead row alone
    indexes_[position]->remove(list);
    return;
  }
  list->head = kNoNode;
  for (; at != kNoNode; at = next(position, at)) {
    if (nodes_[at].is(TNode::kDead)) {
      if (position == 0) {
        nodes_[at].mark(TNode::kOffValueList);
      } else {
        (*links_[position - 1])[at].off_value_list = 1;
      }
      continue;
    }
    if (last_live == kNoNode) {
      list->head = at;
    } else {
      set_next(position, last_live, at);
    }
    last_live = at;
  }
  if (last_live == kNoNode) {
    indexes_[position]->remove(list);
  } else {
    set_next(position, last_live, kNoNode);
    list->set_tail(last_live);
  }
}

void StreamState::sweep_all() {
  if (dead_.empty()) return;
  for (size_t position = 0; position < indexes_.size(); ++position) {
    constexpr size_t kAhead = 8;
    const bool cached = is_cached();
    for (size_t i = 0; i < dead_.size(); ++i) {
      if (!cached && i + kAhead < dead_.size()) prefetch_key(position, key(position, dead_[i + kAhead]));
      if (!off_value_list(position, dead_[i])) unlink_dead(position, key(position, dead_[i]));
    }
    indexes_[position]->give_back(dead_.size());
  }
  if (purged_listed_ > 0) {
    drop_head();
    std::vector<uint32_t> kept;
    for (uint32_t place = 0; place < time_list_.size(); ++place) {
      if (!is_live(time_list_[place].node)) continue;
      time_list_[kept.size()] = time_list_[place];
      kept.push_back(place);
    }
    time_list_.resize(kept.size());
    if (!options_.indexed) columns_.keep(kept);
    purged_listed_ = 0;
  }
  for (size_t position = 0; position < classes(); ++position) {
    KeyDictionary* dictionary = options_.dictionaries[position];
    if (dictionary == nullptr) continue;
    for (const uint32_t node : dead_) dictionary->release(key(position, node));
  }
  const auto release_all = [&](auto& slab) {
    for (const uint32_t node : dead_) slab.release(node);
  };
  release_all(nodes_);
  for (const auto& links : links_) release_all(*links);
  for (const auto& values : values_) release_all(*values);
  dead_.clear();
  if (live_ == 0) {
    dead_.shrink_to_fit();
    newest_ = kBeginning;
    in_order_ = true;
  }
}

}  // namespace streamjoin
