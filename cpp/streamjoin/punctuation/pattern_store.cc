#include "streamjoin/punctuation/pattern_store.h"

#include <algorithm>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

using Kind = AttributePattern::Kind;

std::vector<uint32_t> constant_positions(const KeyPattern& pattern) {
  std::vector<uint32_t> positions;
  for (uint32_t at = 0; at < pattern.attributes.size(); ++at) {
    if (pattern.attributes[at].kind == Kind::kConstant) positions.push_back(at);
  }
  return positions;
}

bool has_range(const KeyPattern& pattern) {
  return std::ranges::any_of(pattern.attributes, [](const auto& one) { return one.kind == Kind::kRange; });
}

}  // namespace

bool PatternStore::covers(std::span<const std::string_view> attributes) const {
  for (const auto& table : tables_) {
    if (table->find(attributes)) return true;
  }
  return std::ranges::any_of(ranges_, [&](const Range& range) { return range.pattern.matches(attributes); });
}

/// Whether a pattern that expires at `at_least` or later contains this normalised one.
bool PatternStore::contained(const KeyPattern& pattern, Time at_least) const {
  const std::vector<uint32_t> positions = constant_positions(pattern);
  std::vector<std::string_view> key;
  for (const AttributePattern& attribute : pattern.attributes) key.push_back(attribute.low);
  for (const auto& table : tables_) {
    // Only tables that fix nothing but constants of `pattern` can contain it, and each has at most one member
    // that does.
    if (!std::ranges::includes(positions, table->fixed())) continue;
    const auto* member = table->find(key);
    if (member && member->second.expires >= at_least) return true;
  }
  return std::ranges::any_of(ranges_, [&](const Range& range) {
    return range.remembered.expires >= at_least && range.pattern.contains(pattern);
  });
}

bool PatternStore::contains(const KeyPattern& pattern) const {
  if (pattern.is_empty()) return !empty();
  KeyPattern normal = pattern;
  normal.normalise();
  return contained(normal, kBeginning);
}

void PatternStore::remember(KeyPattern pattern, Time time, Time expires) {
  if (pattern.is_empty()) return;
  pattern.normalise();
  if (contained(pattern, expires)) return;
  std::vector<Place> narrower = inside(pattern);
  std::erase_if(narrower, [&](const Place& place) { return remembered(place).expires > expires; });
  remove(narrower);
  add(std::move(pattern), time, expires);
}

ConstantPatterns& PatternStore::table(size_t width, std::vector<uint32_t> fixed) {
  for (const auto& table : tables_) {
    if (table->fixed() == fixed) return *table;
  }
  return *tables_.emplace_back(std::make_unique<ConstantPatterns>(width, std::move(fixed)));
}

void PatternStore::add(KeyPattern pattern, Time time, Time expires) {
  const Remembered remembered{time, expires, next_sequence_++};
  Place place{nullptr, nullptr, remembered.sequence};
  if (has_range(pattern)) {
    ranges_.push_back({std::move(pattern), remembered});
  } else {
    place.table = &table(pattern.attributes.size(), constant_positions(pattern));
    place.member = &place.table->insert(pattern, remembered);
  }
  if (expires != kEnd) by_expiry_.emplace(std::pair(expires, remembered.sequence), place);
  ++size_;
}

/// The remembered patterns that a normalised one contains, in the order in which they were remembered.
std::vector<PatternStore::Place> PatternStore::inside(const KeyPattern& wider) {
  std::vector<Place> places;
  for (const auto& table : tables_) {
    for (const auto* member : table->inside(wider))
      places.push_back({table.get(), member, member->second.sequence});
  }
  for (const Range& range : ranges_) {
    if (wider.contains(range.pattern)) places.push_back({nullptr, nullptr, range.remembered.sequence});
  }
  std::ranges::sort(places, {}, &Place::sequence);
  return places;
}

std::vector<PatternStore::Place> PatternStore::all() const {
  std::vector<Place> places;
  for (const auto& table : tables_) {
    table->for_each(
        [&](const auto& member) { places.push_back({table.get(), &member, member.second.sequence}); });
  }
  for (const Range& range : ranges_) places.push_back({nullptr, nullptr, range.remembered.sequence});
  std::ranges::sort(places, {}, &Place::sequence);
  return places;
}

const PatternStore::Range& PatternStore::range(uint64_t sequence) const {
  const auto number = [](const Range& range) { return range.remembered.sequence; };
  const auto found = std::ranges::lower_bound(ranges_, sequence, {}, number);
  SJ_CHECK(found != ranges_.end() && number(*found) == sequence, "a remembered range is missing");
  return *found;
}

KeyPattern PatternStore::pattern(const Place& place) const {
  return place.table ? place.table->pattern(*place.member) : range(place.sequence).pattern;
}

const Remembered& PatternStore::remembered(const Place& place) const {
  return place.table ? place.member->second : range(place.sequence).remembered;
}

std::vector<KeyPattern> PatternStore::remove(const std::vector<Place>& places) {
  std::vector<KeyPattern> removed;
  std::vector<uint64_t> gone;  // ranges: taken out together at the end, in one pass
  for (const Place& place : places) {
    removed.push_back(pattern(place));
    by_expiry_.erase({remembered(place).expires, place.sequence});
    if (place.table) {
      place.table->erase(*place.member);
    } else {
      gone.push_back(place.sequence);
    }
  }
  if (!gone.empty()) {
    std::ranges::sort(gone);
    std::erase_if(ranges_, [&](const Range& range) {
      return std::ranges::binary_search(gone, range.remembered.sequence);
    });
  }
  if (ranges_.size() < ranges_.capacity() / 4) ranges_.shrink_to_fit();
  std::erase_if(tables_, [](const auto& table) { return table->size() == 0; });
  size_ -= places.size();
  return removed;
}

std::vector<KeyPattern> PatternStore::forget_inside(const KeyPattern& pattern) {
  if (empty() || pattern.is_empty()) return {};
  KeyPattern normal = pattern;
  normal.normalise();
  const std::vector<Place> places = inside(normal);
  return places.empty() ? std::vector<KeyPattern>() : remove(places);
}

std::vector<KeyPattern> PatternStore::expire(Time clock) {
  std::vector<Place> places;
  for (auto at = by_expiry_.begin(); at != by_expiry_.end() && at->first.first < clock; ++at) {
    places.push_back(at->second);
  }
  return places.empty() ? std::vector<KeyPattern>() : remove(places);
}

size_t PatternStore::memory_bytes() const {
  size_t bytes = sizeof(*this) + tables_.capacity() * sizeof(void*) + ranges_.capacity() * sizeof(Range);
  for (const auto& table : tables_) bytes += table->memory_bytes();
  for (const Range& range : ranges_) {
    bytes += range.pattern.attributes.capacity() * sizeof(AttributePattern);
    for (const AttributePattern& one : range.pattern.attributes) bytes += one.low.size() + one.high.size();
  }
  return bytes + by_expiry_.size() * (5 * sizeof(void*) + sizeof(decltype(by_expiry_)::value_type));
}

void PatternStore::save(ArchiveWriter& archive) const {
  archive.value<uint64_t>(size_);
  for_each([&](const KeyPattern& pattern, Time time, Time expires) {
    pattern.save(archive);
    archive.value(time);
    archive.value(expires);
  });
}

void PatternStore::load(ArchiveReader& archive) {
  PatternStore loaded;
  const uint64_t count = archive.value<uint64_t>();
  size_t width = 0;
  for (uint64_t at = 0; at < count; ++at) {
    KeyPattern pattern;
    pattern.load(archive);
    if (at == 0) width = pattern.attributes.size();
    if (pattern.attributes.size() != width) throw DamagedArchive("snapshot holds patterns of different keys");
    const Time time = archive.value<Time>();
    const Time expires = archive.value<Time>();
    // By the front door, so that a damaged archive cannot bring in what the invariants forbid.
    loaded.remember(std::move(pattern), time, expires);
  }
  if (loaded.size() != count) throw DamagedArchive("snapshot holds patterns inside one another");
  *this = std::move(loaded);
}

std::string PatternStore::validate() const {
  size_t expiring = 0;
  const std::vector<Place> places = all();
  if (places.size() != size_) return "size differs from the patterns remembered";
  for (const auto& table : tables_) {
    if (table->size() == 0) return "a table is empty";
    if (const std::string broken = table->validate(); !broken.empty()) return broken;
  }
  std::vector<KeyPattern> patterns;
  for (const Place& place : places) patterns.push_back(pattern(place));
  for (size_t at = 0; at < places.size(); ++at) {
    const Place& place = places[at];
    const Time expires = remembered(place).expires;
    if (expires != kEnd) {
      ++expiring;
      const auto found = by_expiry_.find({expires, place.sequence});
      if (found == by_expiry_.end()) return "a pattern is not in the order of expiry";
      if (found->second.member != place.member) return "the order of expiry points to another pattern";
    }
    for (size_t other = 0; other < places.size(); ++other) {
      if (other == at || remembered(places[other]).expires < expires) continue;
      if (patterns[other].contains(patterns[at]))
        return "a pattern is contained in another that expires no earlier";
    }
  }
  if (expiring != by_expiry_.size()) return "the order of expiry holds patterns that are forgotten";
  return "";
}

}  // namespace streamjoin
