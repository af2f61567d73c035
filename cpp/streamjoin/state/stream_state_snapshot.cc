// Sizes, validation and snapshots of StreamState.

#include <algorithm>

#include "streamjoin/base/check.h"
#include "streamjoin/state/stream_state.h"

namespace streamjoin {

std::vector<RowRef> StreamState::move_rows_to(uint32_t batch) {
  sweep_all();
  std::vector<RowRef> from;
  from.reserve(live_);
  for (const Timed& entry : all()) {
    from.push_back(nodes_[entry.node].row());
    nodes_[entry.node].set_row({batch, static_cast<uint32_t>(from.size() - 1)});
  }
  batch_rows_.assign(std::max<size_t>(batch_rows_.size(), batch + 1), 0);
  batch_rows_[batch] = static_cast<uint32_t>(live_);
  empty_batches_.clear();
  return from;
}

size_t StreamState::keys() const {
  size_t keys = 0;
  for (const auto& index : indexes_) keys += index->size();
  return keys;
}

size_t StreamState::memory_bytes() const {
  size_t bytes = nodes_.memory_bytes() + time_list_.capacity() * sizeof(Timed) + columns_.memory_bytes() +
                 (dead_.capacity() + batch_rows_.capacity()) * sizeof(uint32_t);
  for (const auto& links : links_) bytes += links->memory_bytes();
  for (const auto& values : values_) bytes += values->memory_bytes();
  for (const auto& index : indexes_) bytes += index->memory_bytes();
  return bytes;
}

// Rows as columns in the order of the time list. A late row stands elsewhere on its value lists, so the order
// of arrival is written too: the rank of each row among the live ones, list by list, as `after`.
void StreamState::save(ArchiveWriter& out) {
  sweep_all();
  std::vector<Time> times;
  std::vector<uint32_t> number_of_node;
  for (const Timed& entry : all()) {
    if (entry.node >= number_of_node.size()) number_of_node.resize(entry.node + 1, kNoNode);
    number_of_node[entry.node] = static_cast<uint32_t>(times.size());
    times.push_back(entry.time);
  }
  out.array(times);
  for (size_t position = 0; position < classes(); ++position) {
    std::vector<Code> keys;
    std::vector<uint32_t> following;
    for (const Timed& entry : all()) {
      keys.push_back(key(position, entry.node));
      const uint32_t after = options_.indexed ? next(position, entry.node) : kNoNode;
      following.push_back(after == kNoNode ? kNoNode : number_of_node[after]);
    }
    out.array(keys);
    out.array(following);
  }
  for (size_t slot = 0; slot < options_.value_slots; ++slot) {
    std::vector<uint64_t> bits;
    std::vector<uint8_t> kinds;
    for (size_t place = head_; place < time_list_.size(); ++place) {
      const NumericValue number =
          options_.indexed ? value(slot, time_list_[place].node) : columns_.values(slot, place).at(0);
      bits.push_back(number.bits());
      kinds.push_back(number.kind());
    }
    out.array(bits);
    out.array(kinds);
  }
}

void StreamState::load(ArchiveReader& in) {
  SJ_CHECK(live_ == 0 && nodes_.used() == 0, "a snapshot can only be loaded into an empty state");
  const auto times = in.array<Time>();
  const size_t rows = times.size();
  if (!std::is_sorted(times.begin(), times.end())) throw DamagedArchive("rows are not in time order");
  std::vector<std::vector<Code>> keys;
  std::vector<std::vector<uint32_t>> following;
  for (size_t position = 0; position < classes(); ++position) {
    keys.push_back(in.array<Code>());
    following.push_back(in.array<uint32_t>());
    if (keys.back().size() != rows || following.back().size() != rows)
      throw DamagedArchive("row columns differ in length");
  }
  std::vector<std::vector<uint64_t>> bits;
  std::vector<std::vector<uint8_t>> kinds;
  for (size_t slot = 0; slot < options_.value_slots; ++slot) {
    bits.push_back(in.array<uint64_t>());
    kinds.push_back(in.array<uint8_t>());
    if (bits.back().size() != rows || kinds.back().size() != rows)
      throw DamagedArchive("value columns differ in length");
  }
  std::vector<Code> row_keys(classes());
  std::vector<NumericValue> row_values(options_.value_slots);
  std::vector<uint32_t> nodes;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t position = 0; position < classes(); ++position) {
      row_keys[position] = keys[position][row];
      const KeyDictionary* dictionary = options_.dictionaries[position];
      if (dictionary != nullptr && !dictionary->is_live(row_keys[position]))
        throw DamagedArchive("a row of a key that is not there");
    }
    for (size_t slot = 0; slot < options_.value_slots; ++slot) {
      if (kinds[slot][row] > 2) throw DamagedArchive("a value of no known kind");
      row_values[slot] = NumericValue::of_bits(bits[slot][row], kinds[slot][row]);
    }
    nodes.push_back(allocate(times[row], {0, static_cast<uint32_t>(row)}, row_keys, row_values));
    time_list_.push_back({times[row], nodes.back()});
    if (!options_.indexed) columns_.insert(row, row_keys, row_values);
  }
  live_ = rows;
  if (rows > 0) newest_ = times.back();
  batch_rows_.assign(1, static_cast<uint32_t>(rows));
  for (size_t position = 0; position < indexes_.size(); ++position) {
    std::vector<bool> is_head(rows, true);
    for (const uint32_t after : following[position]) {
      if (after == kNoNode) continue;
      if (after >= rows || !is_head[after]) throw DamagedArchive("a value list is not a list");
      is_head[after] = false;
    }
    size_t listed = 0;
    for (size_t row = 0; row < rows; ++row) {
      if (!is_head[row]) continue;
      bool added;
      INode& list = indexes_[position]->find_or_add(keys[position][row], added);
      if (!added) throw DamagedArchive("a key has two value lists");
      list.head = nodes[row];
      for (uint32_t at = static_cast<uint32_t>(row); at != kNoNode; at = following[position][at], ++listed) {
        if (keys[position][at] != list.key) throw DamagedArchive("a value list mixes keys");
        const uint32_t after = following[position][at];
        in_order_ &= after > at;
        set_next(position, nodes[at], after == kNoNode ? kNoNode : nodes[after]);
        list.set_tail(nodes[at]);
      }
    }
    if (listed != rows) throw DamagedArchive("a value list runs in a circle");
  }
}

std::string StreamState::validate() const {
  if (const std::string broken = nodes_.validate(); !broken.empty()) return broken;
  if (!options_.indexed) {
    if (const std::string broken = columns_.validate(time_list_.size()); !broken.empty()) return broken;
  }
  size_t live = 0;
  Time before = kBeginning;
  for (const Timed& entry : all()) {
    if (entry.time < before) return "time list: not in time order";
    before = entry.time;
    if (nodes_[entry.node].time != entry.time) return "time list: a row of another time";
    live += is_live(entry.node);
  }
  if (live != live_) return "stream state: the count of live rows is wrong";
  if (all().size() - live != purged_listed_) return "time list: the count of purged rows is wrong";
  if (live + dead_.size() != nodes_.used()) return "stream state: rows have leaked from the slab";
  size_t in_batches = 0;
  for (const uint32_t rows : batch_rows_) in_batches += rows;
  if (in_batches != live_) return "stream state: the live rows of the batches do not add up";
  for (size_t position = 0; position < indexes_.size(); ++position) {
    if (const std::string broken = indexes_[position]->validate(); !broken.empty()) return broken;
    std::string broken;
    size_t listed = 0;
    indexes_[position]->for_each([&](const INode& list) {
      uint32_t tail = kNoNode;
      for (uint32_t at = list.head; at != kNoNode; tail = at, at = next(position, at)) {
        if (key(position, at) != list.key) broken = "value list: a row of another key";
        if (off_value_list(position, at)) broken = "value list: a row that is marked as gone from it";
        listed += is_live(at);
      }
      if (!list.has_rows()) broken = "I-Node index: a key without rows";
      if (list.has_rows() && tail != list.tail()) broken = "value list: the tail is not the last row";
    });
    if (!broken.empty()) return broken;
    if (listed != live_) return "value list: a live row is on no value list";
  }
  return {};
}

}  // namespace streamjoin
