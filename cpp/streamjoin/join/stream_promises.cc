#include "streamjoin/join/stream_promises.h"

#include <algorithm>
#include <limits>

#include "streamjoin/base/check.h"
#include "streamjoin/base/key_bytes.h"

namespace streamjoin {

CodeRange code_range(const AttributePattern& pattern) {
  if (pattern.kind == AttributePattern::Kind::kConstant) {
    const Code code = decode_integer(pattern.low);
    return {code, code};
  }
  const bool any = pattern.kind == AttributePattern::Kind::kAny;
  return {any || pattern.low_open ? std::numeric_limits<Code>::min() : decode_integer(pattern.low),
          any || pattern.high_open ? std::numeric_limits<Code>::max() : decode_integer(pattern.high)};
}

AttributePattern pattern_of(CodeRange range) {
  AttributePattern pattern = AttributePattern::not_null();
  if (range.low != std::numeric_limits<Code>::min()) {
    pattern.low_open = false;
    append_integer(pattern.low, range.low);
  }
  if (range.high != std::numeric_limits<Code>::max()) {
    pattern.high_open = false;
    append_integer(pattern.high, range.high);
  }
  if (range.low == range.high) return AttributePattern::constant(std::move(pattern.low));
  return pattern;
}

std::string_view bytes_of(Code code, const KeyDictionary* dictionary, std::string& scratch) {
  if (dictionary != nullptr) return dictionary->bytes(code);
  scratch.clear();
  append_integer(scratch, code);
  return scratch;
}

StreamPromises::StreamPromises(std::vector<const KeyDictionary*> dictionaries, Duration lifespan)
    : dictionaries_(std::move(dictionaries)), lifespan_(lifespan), scratch_(dictionaries_.size()) {
  if (dictionaries_.size() > kMostPositions)
    throw UsageError("a stream with punctuations has at most 64 attribute classes");
}

bool StreamPromises::covers(std::span<const Code> codes, Positions known) const {
  for (const Table& table : tables_) {
    if ((table.set & ~known) != 0) continue;
    if (table.codes) {
      if (table.ranges.contains(codes[table.positions[0]])) return true;
    } else if (!table.patterns.empty()) {
      attributes_of(table, codes);
      if (table.patterns.covers(attributes_)) return true;
    }
  }
  return false;
}

Time StreamPromises::covered_until(std::span<const Code> codes, Positions known) const {
  if (lifespan_ == kEnd) return covers(codes, known) ? kEnd : kBeginning;
  Time until = kBeginning;
  for (const Table& table : tables_) {
    if ((table.set & ~known) != 0) continue;
    if (table.codes) {
      until = std::max(until, table.ranges.expiry_of(codes[table.positions[0]]));
      continue;
    }
    attributes_of(table, codes);
    if (!table.patterns.covers(attributes_)) continue;
    table.patterns.for_each([&](const KeyPattern& pattern, Time, Time expires) {
      if (pattern.matches(attributes_)) until = std::max(until, expires);
    });
  }
  return until;
}

bool StreamPromises::contains(const KeyPattern& pattern) const {
  const Positions set = set_of(pattern);
  for (const Table& table : tables_) {
    if ((table.set & ~set) != 0) continue;
    const KeyPattern projected = project(table, pattern);
    if (!table.codes) {
      if (table.patterns.contains(projected)) return true;
      continue;
    }
    const auto [low, high] = code_range(projected.attributes[0]);
    const auto inside = table.ranges.intersection(low, high);
    if (inside.size() == 1 && inside[0] == std::pair(low, high)) return true;
  }
  return false;
}

void StreamPromises::remember(const KeyPattern& pattern, Time time) {
  Table& table = this->table(set_of(pattern));
  const Time expires = end_of(time, lifespan_);
  KeyPattern projected = project(table, pattern);
  if (table.codes) {
    const auto [low, high] = code_range(projected.attributes[0]);
    table.ranges.insert(low, high, expires);
  } else {
    table.patterns.remember(std::move(projected), time, expires);
  }
}

void StreamPromises::forget(const KeyPattern& pattern) {
  Table& table = this->table(set_of(pattern));
  const KeyPattern projected = project(table, pattern);
  if (table.codes) {
    const auto [low, high] = code_range(projected.attributes[0]);
    table.ranges.erase(low, high);
  } else {
    table.patterns.forget_inside(projected);
  }
}

void StreamPromises::expire(Time clock) {
  if (lifespan_ == kEnd) return;
  for (Table& table : tables_) {
    table.ranges.expire(clock);
    table.patterns.expire(clock);
  }
}

RangeSet* StreamPromises::codes_of(size_t position) {
  for (Table& table : tables_) {
    if (table.codes && table.positions[0] == position) return &table.ranges;
  }
  return nullptr;
}

StreamPromises::Positions StreamPromises::set_of(const KeyPattern& pattern) {
  Positions set = 0;
  for (size_t position = 0; position < pattern.attributes.size(); ++position) {
    if (pattern.attributes[position].kind != AttributePattern::Kind::kAny) set |= Positions{1} << position;
  }
  return set;
}

StreamPromises::Table& StreamPromises::table(Positions set) {
  for (Table& table : tables_) {
    if (table.set == set) return table;
  }
  Table& added = tables_.emplace_back();
  added.set = set;
  for (size_t position = 0; position < dictionaries_.size(); ++position) {
    if ((set >> position & 1) != 0) added.positions.push_back(position);
  }
  added.codes = added.positions.size() == 1 && dictionaries_[added.positions[0]] == nullptr;
  return added;
}

KeyPattern StreamPromises::project(const Table& table, const KeyPattern& pattern) const {
  KeyPattern projected;
  for (const size_t position : table.positions) projected.attributes.push_back(pattern.attributes[position]);
  return projected;
}

KeyPattern StreamPromises::spread(const Table& table, const KeyPattern& projected) const {
  KeyPattern pattern{std::vector<AttributePattern>(dictionaries_.size())};
  for (size_t i = 0; i < table.positions.size(); ++i)
    pattern.attributes[table.positions[i]] = projected.attributes[i];
  return pattern;
}

void StreamPromises::attributes_of(const Table& table, std::span<const Code> codes) const {
  attributes_.clear();
  for (const size_t position : table.positions)
    attributes_.push_back(bytes_of(codes[position], dictionaries_[position], scratch_[position]));
}

size_t StreamPromises::held() const {
  size_t held = 0;
  for (const Table& table : tables_) held += table.ranges.ranges() + table.patterns.size();
  return held;
}

size_t StreamPromises::memory_bytes() const {
  size_t bytes = 0;
  for (const Table& table : tables_) bytes += table.ranges.memory_bytes() + table.patterns.memory_bytes();
  return bytes;
}

std::string StreamPromises::validate() const {
  for (const Table& table : tables_) {
    if (std::string broken = table.ranges.validate(); !broken.empty()) return broken;
    if (std::string broken = table.patterns.validate(); !broken.empty()) return broken;
    if (!(table.codes ? table.patterns.empty() : table.ranges.empty()))
      return "promises: a table holds codes and patterns";
  }
  return {};
}

void StreamPromises::save(ArchiveWriter& out) const {
  out.value<uint64_t>(tables_.size());
  for (const Table& table : tables_) {
    out.value<uint64_t>(table.set);
    table.ranges.save(out);
    table.patterns.save(out);
  }
}

void StreamPromises::load(ArchiveReader& in) {
  tables_.clear();
  const uint64_t count = in.value<uint64_t>();
  for (uint64_t i = 0; i < count; ++i) {
    const Positions set = in.value<uint64_t>();
    const bool fits = dictionaries_.size() == kMostPositions || set >> dictionaries_.size() == 0;
    if (set == 0 || !fits) throw DamagedArchive("a promise on an attribute that is not there");
    Table& loaded = table(set);
    loaded.ranges.load(in);
    loaded.patterns.load(in);
    if (!validate().empty()) throw DamagedArchive("a promise of another kind of attribute");
  }
}

}  // namespace streamjoin
