#include "streamjoin/state/key_order.h"

#include <algorithm>

#include "streamjoin/base/hash.h"

namespace streamjoin {
namespace {

using Kind = AttributePattern::Kind;

/// The only key that a constant pattern can match.
std::vector<Code> find_constant(const KeyPattern& pattern, const KeyDictionary& dictionary) {
  std::string key;
  for (const AttributePattern& attribute : pattern.attributes) key += attribute.low;
  const Code code = dictionary.find(key, hash_bytes(key));
  return code == kNoCode ? std::vector<Code>() : std::vector<Code>{code};
}

}  // namespace

void KeyOrder::activate(size_t attribute, const KeyDictionary& dictionary,
                        const AttributeSplitter& splitter) {
  if (active(attribute)) return;
  orders_.resize(splitter.attributes());
  orders_[attribute] = std::make_unique<AttributeOrder<Code>>();
  std::vector<std::string_view> attributes;
  dictionary.for_each([&](Code code, std::string_view key) {
    splitter.split(key, attributes);
    orders_[attribute]->add(attributes[attribute], code);
  });
}

void KeyOrder::add(Code code, std::span<const std::string_view> attributes) {
  for (size_t at = 0; at < orders_.size(); ++at) {
    if (orders_[at]) orders_[at]->add(attributes[at], code);
  }
}

void KeyOrder::remove(Code code, std::span<const std::string_view> attributes) {
  for (size_t at = 0; at < orders_.size(); ++at) {
    if (orders_[at]) orders_[at]->remove(attributes[at], code);
  }
}

/// The attribute that promises the fewest candidates: constants before ranges, then active before not; the
/// width if all are any.
size_t KeyOrder::attribute_to_follow(const KeyPattern& pattern) const {
  size_t best = pattern.attributes.size();
  int best_rank = 0;
  for (size_t at = 0; at < pattern.attributes.size(); ++at) {
    const Kind kind = pattern.attributes[at].kind;
    const int rank = kind == Kind::kAny ? 0 : (kind == Kind::kConstant ? 4 : 2) + (active(at) ? 1 : 0);
    if (rank > best_rank) best = at, best_rank = rank;
  }
  return best;
}

std::vector<Code> KeyOrder::matching(const KeyPattern& pattern, const KeyDictionary& dictionary,
                                     const AttributeSplitter& splitter) {
  std::vector<Code> codes;
  if (pattern.attributes.size() != splitter.attributes() || pattern.is_empty()) return codes;
  if (pattern.is_constant()) return find_constant(pattern, dictionary);
  const size_t followed = attribute_to_follow(pattern);
  if (followed == pattern.attributes.size()) {
    dictionary.for_each([&codes](Code code, std::string_view) { codes.push_back(code); });
    return codes;
  }
  activate(followed, dictionary, splitter);
  const auto is_any = [](const AttributePattern& attribute) { return attribute.kind == Kind::kAny; };
  const bool one_attribute_decides =
      static_cast<size_t>(std::ranges::count_if(pattern.attributes, is_any)) + 1 == pattern.attributes.size();
  std::vector<std::string_view> attributes;
  orders_[followed]->visit(pattern.attributes[followed], [&](Code code) {
    if (!one_attribute_decides) {
      splitter.split(dictionary.bytes(code), attributes);
      if (!pattern.matches(attributes)) return;
    }
    codes.push_back(code);
  });
  std::ranges::sort(codes);
  return codes;
}

size_t KeyOrder::memory_bytes() const {
  size_t bytes = sizeof(*this) + orders_.capacity() * sizeof(void*);
  for (const auto& order : orders_) bytes += order ? order->memory_bytes() : 0;
  return bytes;
}

std::string KeyOrder::validate(const KeyDictionary& dictionary, const AttributeSplitter& splitter) const {
  std::string broken;
  for (size_t at = 0; at < orders_.size(); ++at) {
    if (!orders_[at]) continue;
    if (orders_[at]->size() != dictionary.size())
      return "an order has another number of keys than the dictionary";
    std::vector<std::string_view> attributes;
    dictionary.for_each([&](Code code, std::string_view key) {
      splitter.split(key, attributes);
      if (!orders_[at]->contains(attributes[at], code)) {
        broken = "a key is missing in the order by attribute " + std::to_string(at) + ": code " +
                 std::to_string(code);
      }
    });
  }
  return broken;
}

}  // namespace streamjoin
