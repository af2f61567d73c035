#include "streamjoin/punctuation/key_pattern.h"

#include <algorithm>

#include "streamjoin/base/key_bytes.h"

namespace streamjoin {

using Kind = AttributePattern::Kind;

bool AttributePattern::matches(std::string_view attribute) const {
  switch (kind) {
    case Kind::kAny:
      return true;
    case Kind::kConstant:
      return attribute == low;
    case Kind::kRange:
      return !is_null(attribute) && (low_open || low <= attribute) && (high_open || attribute <= high);
  }
  return false;
}

bool AttributePattern::contains(const AttributePattern& other) const {
  if (kind == Kind::kAny || other.is_empty()) return true;
  if (other.kind == Kind::kAny) return false;
  if (other.kind == Kind::kConstant) return matches(other.low);
  if (kind == Kind::kConstant)
    return !other.low_open && !other.high_open && other.low == low && other.high == low;
  return (low_open || (!other.low_open && low <= other.low)) &&
         (high_open || (!other.high_open && other.high <= high));
}

bool AttributePattern::is_empty() const {
  if (kind != Kind::kRange || high_open) return false;
  return is_null(high) || (!low_open && high < low);
}

AttributePattern AttributePattern::intersection(const AttributePattern& other) const {
  if (kind == Kind::kAny) return other;
  if (other.kind == Kind::kAny) return *this;
  if (kind == Kind::kConstant || other.kind == Kind::kConstant) {
    const AttributePattern& constant = kind == Kind::kConstant ? *this : other;
    const AttributePattern& rest = kind == Kind::kConstant ? other : *this;
    return rest.matches(constant.low) ? constant : nothing();
  }
  AttributePattern both = *this;
  if (!other.low_open && (low_open || low < other.low)) both.low = other.low;
  if (!other.high_open && (high_open || high > other.high)) both.high = other.high;
  both.low_open = low_open && other.low_open;
  both.high_open = high_open && other.high_open;
  return both;
}

KeyPattern KeyPattern::intersection(const KeyPattern& other) const {
  KeyPattern both;
  for (size_t i = 0; i < attributes.size(); ++i)
    both.attributes.push_back(attributes[i].intersection(other.attributes[i]));
  return both;
}

bool KeyPattern::matches(std::span<const std::string_view> key) const {
  if (key.size() != attributes.size()) return false;
  for (size_t at = 0; at < key.size(); ++at) {
    if (!attributes[at].matches(key[at])) return false;
  }
  return true;
}

bool KeyPattern::contains(const KeyPattern& other) const {
  if (other.attributes.size() != attributes.size()) return false;
  if (other.is_empty()) return true;
  for (size_t at = 0; at < attributes.size(); ++at) {
    if (!attributes[at].contains(other.attributes[at])) return false;
  }
  return true;
}

bool KeyPattern::is_any() const {
  return std::ranges::all_of(attributes, [](const auto& pattern) { return pattern.kind == Kind::kAny; });
}

bool KeyPattern::is_constant() const {
  return std::ranges::all_of(attributes, [](const auto& pattern) { return pattern.kind == Kind::kConstant; });
}

bool KeyPattern::is_empty() const {
  return std::ranges::any_of(attributes, [](const auto& pattern) { return pattern.is_empty(); });
}

void KeyPattern::normalise() {
  for (AttributePattern& pattern : attributes) {
    if (pattern.kind != Kind::kRange || pattern.low_open || pattern.high_open || pattern.low != pattern.high)
      continue;
    if (!pattern.is_empty()) pattern = AttributePattern::constant(std::move(pattern.low));
  }
}

void KeyPattern::save(ArchiveWriter& archive) const {
  archive.value<uint32_t>(static_cast<uint32_t>(attributes.size()));
  for (const AttributePattern& pattern : attributes) {
    archive.value(pattern.kind);
    archive.text(pattern.low);
    archive.text(pattern.high);
    archive.value<uint8_t>(pattern.low_open);
    archive.value<uint8_t>(pattern.high_open);
  }
}

void KeyPattern::load(ArchiveReader& archive) {
  std::vector<AttributePattern> loaded;
  const uint32_t count = archive.value<uint32_t>();
  for (uint32_t at = 0; at < count; ++at) {
    AttributePattern& pattern = loaded.emplace_back();
    pattern.kind = archive.value<Kind>();
    if (pattern.kind > Kind::kRange) throw DamagedArchive("snapshot holds an unknown kind of pattern");
    pattern.low = archive.text();
    pattern.high = archive.text();
    pattern.low_open = archive.value<uint8_t>() != 0;
    pattern.high_open = archive.value<uint8_t>() != 0;
  }
  attributes = std::move(loaded);
}

}  // namespace streamjoin
