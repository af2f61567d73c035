// KeyPattern: which keys a punctuation speaks of, one pattern per attribute, as bytes of base/key_bytes.h.
//
//   attribute    any         constant      range          range, high end open
//   matches      all         low itself    low .. high    low and after
//   null         yes         if low is     never          never
//
// A key matches if each of its attributes does. Attributes are compared as bytes, which is the order of their
// values. `contains` looks at the ends as written: it does not know that an open end and the largest integer
// mean the same. So a false "no" is possible there, a false "yes" is not.
// Cost: linear in the attributes. A value; copies are deep.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamjoin/base/archive.h"

namespace streamjoin {

struct AttributePattern {
  enum class Kind : uint8_t { kAny, kConstant, kRange };

  Kind kind = Kind::kAny;
  std::string low,
      high;  // encoded attributes; a constant has its value in `low`, range ends are inclusive and never null
  bool low_open = false, high_open = false;  // of a range

  static AttributePattern any() { return {}; }
  static AttributePattern constant(std::string value) {
    return {Kind::kConstant, std::move(value), {}, false, false};
  }
  static AttributePattern range(std::string low, std::string high) {
    return {Kind::kRange, std::move(low), std::move(high), false, false};
  }
  static AttributePattern at_least(std::string low) {
    return {Kind::kRange, std::move(low), {}, false, true};
  }
  static AttributePattern at_most(std::string high) {
    return {Kind::kRange, {}, std::move(high), true, false};
  }
  /// A range whose ends are crossed.
  static AttributePattern nothing() { return range(std::string(1, '\1'), std::string()); }
  static AttributePattern not_null() { return {Kind::kRange, {}, {}, true, true}; }

  bool matches(std::string_view attribute) const;
  bool contains(const AttributePattern& other) const;
  AttributePattern intersection(const AttributePattern& other) const;
  /// A range with its ends crossed: matches nothing.
  bool is_empty() const;
  bool operator==(const AttributePattern&) const = default;
};

struct KeyPattern {
  std::vector<AttributePattern> attributes;

  /// `attributes` are those of one key, as `split` gives them; as many as the pattern has.
  bool matches(std::span<const std::string_view> attributes) const;
  /// Whether every key that `other` matches is matched here. A pattern that matches nothing is contained in
  /// every pattern.
  bool contains(const KeyPattern& other) const;
  /// What both match: possibly nothing.
  KeyPattern intersection(const KeyPattern& other) const;
  /// Every attribute `*`: all keys, which ends a stream.
  bool is_any() const;
  /// Every attribute a constant: one key.
  bool is_constant() const;
  /// Matches no key at all.
  bool is_empty() const;
  /// Writes ranges of one value as constants. Matches the same keys as before.
  void normalise();
  bool operator==(const KeyPattern&) const = default;

  void save(ArchiveWriter& archive) const;
  /// Replaces the pattern. On DamagedArchive it is as it was.
  void load(ArchiveReader& archive);
};

}  // namespace streamjoin
