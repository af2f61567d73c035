// The inputs of the script fuzzer: bytes as choices, and keys of every kind made from small numbers.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "streamjoin/engine/key_encoder.h"
#include "streamjoin/punctuation/key_pattern.h"

namespace streamjoin {

/// Bytes as choices; when they are used up, every choice is zero.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
  bool at_end() const { return at_ == end_; }
  int below(int bound) { return at_end() ? 0 : *at_++ % bound; }
  bool one_in(int chances) { return below(chances) == chances - 1; }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
};

enum class KeyKind { kDirect, kBytes, kPair };
inline constexpr int kKeys = 12;

/// Keys 0 .. kKeys - 1 as key columns of each kind: an integer, a string, or a string beside an integer that
/// may be null.
class KeyColumns {
 public:
  explicit KeyColumns(KeyKind kind) : kind_(kind) {}

  std::vector<AttributeType> types() const {
    if (kind_ == KeyKind::kDirect) return {{AttributeKind::kInteger}};
    if (kind_ == KeyKind::kBytes) return {{AttributeKind::kBytes}};
    return {{AttributeKind::kBytes}, {AttributeKind::kInteger}};
  }
  std::vector<bool> null_safe() const {
    return kind_ == KeyKind::kPair ? std::vector<bool>{false, true} : std::vector<bool>{false};
  }

  void append(int key, bool null) {
    text_ += text_of(key);
    ends_.push_back(static_cast<int64_t>(text_.size()));
    integers_.push_back(integer_of(key));
    valid_.push_back(!null);
    second_valid_.push_back(integer_of(key) != 0);
  }
  std::vector<KeyColumn> columns() const {
    const KeyColumn integers{{AttributeKind::kInteger}, integers_.data(), nullptr, valid_.data()};
    const KeyColumn text{{AttributeKind::kBytes}, text_.data(), ends_.data(), valid_.data()};
    if (kind_ == KeyKind::kDirect) return {integers};
    if (kind_ == KeyKind::kBytes) return {text};
    return {text, {{AttributeKind::kInteger}, integers_.data(), nullptr, second_valid_.data()}};
  }

  KeyPattern pattern(Choices& choices) const {
    KeyPattern pattern;
    for (size_t at = 0; at < types().size(); ++at) {
      const int low = choices.below(kKeys);
      const int high = std::min(kKeys - 1, low + choices.below(4));
      const auto encoded = [&](int key) { return encode(types()[at].kind, key); };
      switch (choices.below(8)) {
        case 0:
          pattern.attributes.push_back(choices.one_in(4) ? AttributePattern::any()
                                                         : AttributePattern::nothing());
          break;
        case 1:
          pattern.attributes.push_back(AttributePattern::at_least(encoded(low)));
          break;
        case 2:
          pattern.attributes.push_back(AttributePattern::at_most(encoded(low)));
          break;
        case 3:
        case 4:
          pattern.attributes.push_back(AttributePattern::range(encoded(low), encoded(high)));
          break;
        default:
          pattern.attributes.push_back(AttributePattern::constant(encoded(low)));
      }
    }
    if (pattern.attributes.size() == 2 && choices.one_in(2)) {
      pattern.attributes[static_cast<size_t>(choices.below(2))] = AttributePattern::any();
    }
    return pattern;
  }

 private:
  std::string text_of(int key) const {
    // Some are longer than a dictionary entry holds by itself, one is empty, one has a zero byte.
    if (kind_ == KeyKind::kPair) key /= 3;
    if (key == 1) return std::string("z\0z", 3);
    return key == 0 ? "" : std::string(key % 3 == 0 ? 40 : 2, static_cast<char>('a' + key));
  }
  int64_t integer_of(int key) const { return kind_ == KeyKind::kPair ? key % 3 : key - kKeys / 2; }
  std::string encode(AttributeKind kind, int key) const {
    std::string out;
    kind == AttributeKind::kBytes ? append_bytes(out, text_of(key)) : append_integer(out, integer_of(key));
    return out;
  }

  KeyKind kind_;
  std::string text_;
  std::vector<int64_t> ends_{0};
  std::vector<int64_t> integers_;
  std::vector<uint8_t> valid_, second_valid_;
};

}  // namespace streamjoin
