#include "streamjoin/engine/key_space.h"

#include <algorithm>

#include "streamjoin/base/hash.h"

namespace streamjoin {
namespace {

constexpr size_t kBlock = 64;  // keys whose dictionary slots are fetched together

}  // namespace

void KeySpace::codes_of(std::span<const KeyColumn> columns, size_t rows, BinaryJoin& join,
                        std::vector<Code>& codes) {
  codes.clear();
  codes.reserve(rows);
  encoder_.encode_all(columns, rows, arena_, ends_);
  hashes_.resize(rows);
  const auto key = [&](size_t row) {
    const uint64_t begin = row == 0 ? 0 : ends_[row - 1];
    return std::string_view(arena_).substr(begin, ends_[row] - begin);
  };
  for (size_t begin = 0; begin < rows; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, rows);
    for (size_t row = begin; row < end; ++row) dictionary_.prefetch(hashes_[row] = hash_bytes(key(row)));
    for (size_t row = begin; row < end; ++row) dictionary_.prefetch_entry(hashes_[row]);
    for (size_t row = begin; row < end; ++row) {
      bool created;
      codes.push_back(dictionary_.intern(key(row), hashes_[row], created));
      if (created) welcome(codes.back(), join);
    }
  }
}

Code KeySpace::hold(std::string_view key, BinaryJoin& join) {
  bool created;
  const Code code = dictionary_.intern(key, hash_bytes(key), created);
  if (created) welcome(code, join);
  return code;
}

void KeySpace::let_go(std::span<const Code> codes, BinaryJoin& join) {
  for (const Code code : codes) release(code, join);
}

void KeySpace::welcome(Code code, BinaryJoin& join) {
  if (!order_.active() && patterns_[kLeft].empty() && patterns_[kRight].empty()) return;
  split(code, attributes_);
  if (order_.active()) order_.add(code, attributes_);
  for (const Side side : {kLeft, kRight}) {
    if (patterns_[side].covers(attributes_)) join.cover(side, code, covered_until(side, attributes_, join));
  }
}

void KeySpace::release(Code code, BinaryJoin& join) {
  if (dictionary_.references(code) == 1) {
    if (order_.active()) {
      split(code, attributes_);
      order_.remove(code, attributes_);
    }
    for (const Side side : {kLeft, kRight}) {
      if (join.promises(side).any_covered()) join.uncover(side, code);
    }
  }
  dictionary_.release(code);
}

Time KeySpace::covered_until(Side side, std::span<const std::string_view> attributes,
                             const BinaryJoin& join) const {
  if (join.options().sides[side].lifespan == kEnd) return kEnd;
  Time until = kBeginning;
  patterns_[side].for_each([&](const KeyPattern& pattern, Time, Time expires) {
    if (pattern.matches(attributes)) until = std::max(until, expires);
  });
  return until;
}

std::vector<Code> KeySpace::matching(const KeyPattern& pattern) {
  std::vector<Code> codes = order_.matching(pattern, dictionary_, encoder_.splitter());
  std::sort(codes.begin(), codes.end(), [&](Code a, Code b) { return bytes(a) < bytes(b); });
  return codes;
}

void KeySpace::recover(Side side, std::span<const Code> codes, BinaryJoin& join) {
  for (const Code code : codes) {
    split(code, attributes_);
    if (!patterns_[side].covers(attributes_)) join.uncover(side, code);
  }
}

size_t KeySpace::memory_bytes() const {
  return dictionary_.memory_bytes() + order_.memory_bytes() + patterns_[kLeft].memory_bytes() +
         patterns_[kRight].memory_bytes();
}

std::string KeySpace::validate() const {
  if (const std::string broken = dictionary_.validate(); !broken.empty()) return broken;
  if (const std::string broken = order_.validate(dictionary_, encoder_.splitter()); !broken.empty())
    return broken;
  for (const PatternStore& patterns : patterns_) {
    if (const std::string broken = patterns.validate(); !broken.empty()) return broken;
  }
  return {};
}

void KeySpace::save(ArchiveWriter& out) const {
  dictionary_.save(out);
  for (const PatternStore& patterns : patterns_) patterns.save(out);
}

void KeySpace::load(ArchiveReader& in) {
  dictionary_.load(in);
  if (direct() && dictionary_.size() > 0) throw DamagedArchive("snapshot holds codes of keys that need none");
  dictionary_.for_each([&](Code, std::string_view key) {
    if (!encoder_.splitter().fits(key)) throw DamagedArchive("snapshot holds a key of other types");
  });
  for (PatternStore& patterns : patterns_) {
    patterns.load(in);
    patterns.for_each([&](const KeyPattern& pattern, Time, Time) { check_loaded(pattern); });
  }
  dictionary_.for_each([&](Code code, std::string_view) {
    saved_references_.emplace_back(code, dictionary_.references(code));
  });
}

void KeySpace::check_loaded(const KeyPattern& pattern) const {
  const std::vector<AttributeType>& types = encoder_.types();
  bool fits = pattern.attributes.size() == types.size();
  for (size_t i = 0; fits && i < types.size(); ++i) {
    const AttributePattern& attribute = pattern.attributes[i];
    const bool has_low = attribute.kind == AttributePattern::Kind::kConstant ||
                         (attribute.kind == AttributePattern::Kind::kRange && !attribute.low_open);
    const bool has_high = attribute.kind == AttributePattern::Kind::kRange && !attribute.high_open;
    fits = (!has_low || attribute_fits(types[i], attribute.low)) &&
           (!has_high || attribute_fits(types[i], attribute.high));
  }
  if (!fits) throw DamagedArchive("snapshot holds a pattern over other types");
}

// The I-Nodes of the loaded state have taken their own references by now: those that were saved go.
void KeySpace::after_load(BinaryJoin& join) {
  for (const auto& [code, count] : saved_references_) {
    if (dictionary_.references(code) != 2 * uint64_t{count})
      throw DamagedArchive("snapshot counts other references to a key than its rows and promises hold");
  }
  for (const auto& [code, count] : saved_references_) {
    for (uint32_t i = 0; i < count; ++i) release(code, join);
  }
  saved_references_.clear();
}

}  // namespace streamjoin
