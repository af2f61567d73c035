#include "streamjoin/join/witnesses.h"

#include <algorithm>

namespace streamjoin {

Witnesses::Row& Witnesses::row(Member of) {
  std::vector<Row>& rows = rows_[of.stream];
  if (of.node >= rows.size()) rows.resize(std::max<size_t>(of.node + 1, rows.size() + rows.size() / 2));
  return rows[of.node];
}

const Witnesses::Row& Witnesses::row(Member of) const {
  static const Row nothing;
  const std::vector<Row>& rows = rows_[of.stream];
  return of.node < rows.size() ? rows[of.node] : nothing;
}

void Witnesses::set(Member owner, std::span<const Member> members) {
  unlink(row(owner));
  ++row(owner).version;
  if (members.empty()) return;
  uint32_t first;
  if (free_.empty()) {
    first = static_cast<uint32_t>(links_.size());
    links_.resize(links_.size() + streams_ - 1);
  } else {
    first = free_.back();
    free_.pop_back();
  }
  row(owner).witness = first;
  for (size_t i = 0; i < members.size(); ++i) {
    const uint32_t at = first + static_cast<uint32_t>(i);
    Row& member = row(members[i]);
    links_[at] = {owner, members[i], member.kept, kNone, true};
    if (member.kept != kNone) links_[member.kept].previous = at;
    member.kept = at;
  }
  for (size_t i = members.size(); i < streams_ - 1; ++i) links_[first + i].used = false;
}

void Witnesses::drop(Member owner) {
  unlink(row(owner));
  ++row(owner).version;
}

void Witnesses::unlink(Row& owner) {
  if (owner.witness == kNone) return;
  for (uint32_t at = owner.witness; at < owner.witness + streams_ - 1 && links_[at].used; ++at) {
    const Link& link = links_[at];
    if (link.previous == kNone) {
      row(link.member).kept = link.next;
    } else {
      links_[link.previous].next = link.next;
    }
    if (link.next != kNone) links_[link.next].previous = link.previous;
    links_[at].used = false;
  }
  free_.push_back(owner.witness);
  owner.witness = kNone;
}

void Witnesses::clear() {
  *this = Witnesses(streams_);
}

void Witnesses::wait(size_t stream, Time time, Member owner) {
  std::vector<Wait>& heap = due_[stream];
  heap.push_back({time, owner, row(owner).version});
  std::push_heap(heap.begin(), heap.end());
  ++waits_;
  size_t rows = 0;
  for (const auto& of_stream : rows_) rows += of_stream.size();
  if (waits_ <= 2 * streams_ * rows + kSlack) return;
  waits_ = 0;
  for (auto& waits : due_) {
    std::erase_if(waits, [&](const Wait& wait) { return row(wait.owner).version != wait.version; });
    std::make_heap(waits.begin(), waits.end());
    waits_ += waits.size();
  }
}

std::vector<Witnesses::Member> Witnesses::due(size_t stream, Time clock) {
  std::vector<Member> owners;
  std::vector<Wait>& heap = due_[stream];
  while (!heap.empty() && heap.front().time < clock) {
    if (row(heap.front().owner).version == heap.front().version) owners.push_back(heap.front().owner);
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
    --waits_;
  }
  return owners;
}

size_t Witnesses::memory_bytes() const {
  size_t bytes = links_.capacity() * sizeof(Link) + free_.capacity() * sizeof(uint32_t);
  for (const auto& rows : rows_) bytes += rows.capacity() * sizeof(Row);
  for (const auto& heap : due_) bytes += heap.capacity() * sizeof(Wait);
  return bytes;
}

std::string Witnesses::validate() const {
  size_t listed = 0;
  for (uint32_t stream = 0; stream < rows_.size(); ++stream) {
    for (uint32_t node = 0; node < rows_[stream].size(); ++node) {
      uint32_t previous = kNone;
      for (uint32_t at = rows_[stream][node].kept; at != kNone; at = links_[at].next) {
        const Link& link = links_[at];
        if (!link.used || link.previous != previous || link.member.stream != stream ||
            link.member.node != node)
          return "witnesses: a link is on the list of a row that it does not name";
        if (row(link.owner).witness > at || at - row(link.owner).witness >= streams_ - 1)
          return "witnesses: a link is not part of its owner's witness";
        previous = at;
        ++listed;
      }
    }
  }
  size_t used = 0;
  for (const Link& link : links_) used += link.used ? 1 : 0;
  return used == listed ? "" : "witnesses: a link is on no list";
}

}  // namespace streamjoin
