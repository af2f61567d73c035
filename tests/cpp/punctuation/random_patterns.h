// Random keys and patterns over small integers, in a plain form whose meaning needs no encoding: the judge of
// the encoded forms.

#pragma once

#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fresh_seed.h"
#include "streamjoin/base/key_bytes.h"
#include "streamjoin/punctuation/key_pattern.h"

namespace streamjoin {

inline constexpr int kValues = 6;  // attributes of the tests are null or 0 .. kValues - 1

using PlainValue = std::optional<int>;
using PlainKey = std::vector<PlainValue>;

struct PlainAttribute {
  AttributePattern::Kind kind;
  PlainValue low, high;  // a constant may be null; a missing end of a range is open
};
using PlainPattern = std::vector<PlainAttribute>;

inline bool matches(const PlainAttribute& pattern, PlainValue value) {
  if (pattern.kind == AttributePattern::Kind::kAny) return true;
  if (pattern.kind == AttributePattern::Kind::kConstant) return value == pattern.low;
  return value && (!pattern.low || *pattern.low <= *value) && (!pattern.high || *value <= *pattern.high);
}

inline bool matches(const PlainPattern& pattern, const PlainKey& key) {
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (!matches(pattern[at], key[at])) return false;
  }
  return true;
}

inline bool has_open_end(const PlainPattern& pattern) {
  for (const PlainAttribute& one : pattern) {
    if (one.kind == AttributePattern::Kind::kRange && (!one.low || !one.high)) return true;
  }
  return false;
}

inline bool has_any(const PlainPattern& pattern) {
  for (const PlainAttribute& one : pattern) {
    if (one.kind == AttributePattern::Kind::kAny) return true;
  }
  return false;
}

inline std::string encode(PlainValue value) {
  std::string out;
  if (value) {
    append_integer(out, *value);
  } else {
    append_null(out);
  }
  return out;
}

inline KeyPattern encode(const PlainPattern& plain) {
  KeyPattern pattern;
  for (const PlainAttribute& one : plain) {
    AttributePattern& attribute = pattern.attributes.emplace_back();
    attribute.kind = one.kind;
    if (one.kind == AttributePattern::Kind::kAny) continue;
    if (one.kind == AttributePattern::Kind::kConstant) {
      attribute.low = encode(one.low);
      continue;
    }
    attribute.low_open = !one.low;
    attribute.high_open = !one.high;
    if (one.low) attribute.low = encode(one.low);
    if (one.high) attribute.high = encode(one.high);
  }
  return pattern;
}

class EncodedKey {
 public:
  explicit EncodedKey(const PlainKey& key) {
    for (const PlainValue value : key) attributes_.push_back(encode(value));
    views_.assign(attributes_.begin(), attributes_.end());
  }
  std::span<const std::string_view> views() const { return views_; }
  std::string bytes() const {
    std::string all;
    for (const std::string& attribute : attributes_) all += attribute;
    return all;
  }

 private:
  std::vector<std::string> attributes_;
  std::vector<std::string_view> views_;
};

inline std::vector<PlainKey> all_keys(size_t width) {
  std::vector<PlainKey> keys = {{}};
  for (size_t at = 0; at < width; ++at) {
    std::vector<PlainKey> longer;
    for (const PlainKey& key : keys) {
      for (int value = -1; value < kValues; ++value) {
        longer.push_back(key);
        longer.back().push_back(value < 0 ? PlainValue() : PlainValue(value));
      }
    }
    keys = std::move(longer);
  }
  return keys;
}

class RandomPatterns {
 public:
  RandomPatterns() : random_(fresh_seed()) {}

  size_t below(size_t bound) { return random_() % bound; }
  PlainValue value() {
    return below(kValues + 1) == 0 ? PlainValue() : PlainValue(static_cast<int>(below(kValues)));
  }
  PlainKey key(size_t width) {
    PlainKey key(width);
    for (PlainValue& one : key) one = value();
    return key;
  }
  PlainPattern pattern(size_t width) {
    PlainPattern pattern;
    for (size_t at = 0; at < width; ++at) {
      const size_t kind = below(7);
      if (kind < 3)
        pattern.push_back({AttributePattern::Kind::kAny, {}, {}});
      else if (kind < 5)
        pattern.push_back({AttributePattern::Kind::kConstant, value(), {}});
      else
        pattern.push_back({AttributePattern::Kind::kRange, end(), end()});
    }
    return pattern;
  }

 private:
  PlainValue end() { return below(4) == 0 ? PlainValue() : PlainValue(static_cast<int>(below(kValues))); }

  std::mt19937_64 random_;
};

}  // namespace streamjoin
