// The snapshot half of WindowState.

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "streamjoin/base/check.h"
#include "streamjoin/state/window_state.h"

namespace streamjoin {
namespace {

/// About how many of the keys are different: each sets one of as many bits, and those that stay clear tell.
size_t likely_distinct(std::span<const Code> keys) {
  const size_t bits = std::bit_ceil(std::max<size_t>(64, keys.size()));
  std::vector<bool> seen(bits);
  size_t clear = bits;
  for (const Code key : keys) {
    const size_t bit = slot_of(hash_code(key), bits);
    clear -= !seen[bit];
    seen[bit] = true;
  }
  if (clear == 0) return keys.size();
  const double all = static_cast<double>(bits);
  return std::min(keys.size(), static_cast<size_t>(all * std::log(all / static_cast<double>(clear))));
}

}  // namespace

// Rows as columns, time list first. Only where late rows stand among others does a value list differ from
// that order: such lists are written out.
void WindowState::save(ArchiveWriter& out) {
  sweep_all();
  sort_late_rows();
  std::vector<Time> times;
  std::vector<Code> keys;
  std::vector<uint8_t> marks;
  std::unordered_map<const TNode*, uint32_t> number;
  std::unordered_set<Code> mixed;
  for_each_row([&](TNode& node) {
    if (!late_.empty()) number.emplace(&node, static_cast<uint32_t>(times.size()));
    if (node.is(TNode::kLate)) mixed.insert(node.key);
    times.push_back(node.time);
    keys.push_back(node.key);
    marks.push_back(static_cast<uint8_t>(node.is(TNode::kMatched) | node.is(TNode::kLastPromised) << 1 |
                                         node.is(TNode::kLate) << 2));
  });
  std::vector<uint32_t> lists;
  for (const Code key : mixed) {
    look(*lists_.find(key), [&](uint32_t, const TNode& node) {
      lists.push_back(number.at(&node));
      return Visit::kKeep;
    });
  }
  out.array(times);
  out.array(keys);
  out.array(marks);
  out.array(lists);
}

void WindowState::load(ArchiveReader& in) {
  SJ_CHECK(live_ == 0 && nodes_.used() == 0, "a snapshot can only be loaded into an empty state");
  const auto times = in.array<Time>();
  const auto keys = in.array<Code>();
  const auto marks = in.array<uint8_t>();
  const auto lists = in.array<uint32_t>();
  if (keys.size() != times.size() || marks.size() != times.size())
    throw DamagedArchive("row columns differ in length");
  std::vector<uint32_t> nodes;
  nodes.reserve(times.size());
  lists_.reserve(likely_distinct(keys));
  constexpr size_t kAhead = 8;  // rows whose slot is known, and as many again whose slot is on its way
  Time newest = kBeginning;
  for (size_t i = 0; i < times.size(); ++i) {
    if (i + 2 * kAhead < keys.size()) lists_.prefetch(hash_code(keys[i + 2 * kAhead]));
    if (i + kAhead < keys.size()) {
      const ValueList* likely = lists_.find_likely_slot(hash_code(keys[i + kAhead]));
      if (!likely->vacant()) nodes_.prefetch(likely->tail());
    }
    const RowRef row{0, static_cast<uint32_t>(i)};
    const bool late = (marks[i] & 4) != 0;
    if (marks[i] > 7) throw DamagedArchive("a row with unknown marks");
    if (!may_hold(keys[i])) throw DamagedArchive("a row of a key that is not there");
    if (!late && times[i] < newest) throw DamagedArchive("rows are not in time order");
    if (!late) newest = times[i];
    nodes.push_back(late ? insert_late(times[i], keys[i], row) : insert(times[i], keys[i], row));
    if (marks[i] & 1) nodes_[nodes.back()].mark(TNode::kMatched);
    if (marks[i] & 2) nodes_[nodes.back()].mark(TNode::kLastPromised);
  }
  if (late_.empty() && !lists.empty()) throw DamagedArchive("a value list is written out without a late row");
  // Of each key, what its next row may not come before: the number behind the last row in order, and the
  // largest time of a late one.
  std::unordered_map<Code, std::pair<uint32_t, Time>> after;
  for (const uint32_t number : lists) {
    if (number >= nodes.size()) throw DamagedArchive("a value list names a row that is not there");
    const uint32_t index = nodes[number];
    TNode& node = nodes_[index];
    ValueList& list = *lists_.find(node.key);
    const auto [at, starts] = after.try_emplace(node.key, 0u, kBeginning);
    auto& [in_order, late] = at->second;
    if (node.is(TNode::kLate)) {
      late = std::max(late, node.time);
    } else {
      // Rows in order leave as the time list has them, and from the head of their value list.
      if (number < in_order || node.time < late)
        throw DamagedArchive("a value list is not in the order of its rows");
      in_order = number + 1;
    }
    if (starts) {
      node.next_in_value = index;
    } else {
      node.next_in_value = std::exchange(nodes_[list.tail()].next_in_value, index);
    }
    list.set_tail(index);
  }
}

}  // namespace streamjoin
