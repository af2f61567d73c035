#include "streamjoin/punctuation/constant_patterns.h"

#include <algorithm>
#include <cstring>

#include "streamjoin/base/check.h"
#include "streamjoin/base/hash.h"

namespace streamjoin {
namespace {

using Kind = AttributePattern::Kind;
using Length = uint32_t;

/// Takes the first constant off `bytes`.
std::string_view next_constant(std::string_view& bytes) {
  Length length;
  std::memcpy(&length, bytes.data(), sizeof length);
  const std::string_view constant = bytes.substr(sizeof length, length);
  bytes.remove_prefix(sizeof length + length);
  return constant;
}

std::string_view constant_at(std::string_view bytes, size_t place) {
  for (; place > 0; --place) next_constant(bytes);
  return next_constant(bytes);
}

std::vector<std::string_view> lows(const KeyPattern& pattern) {
  std::vector<std::string_view> key;
  for (const AttributePattern& attribute : pattern.attributes) key.push_back(attribute.low);
  return key;
}

}  // namespace

bool ConstantPatterns::Equal::operator()(const Projection& a, const Constants& b) const {
  if (a.hash != b.hash) return false;
  std::string_view rest = b.bytes;
  for (const uint32_t position : *a.fixed) {
    if (next_constant(rest) != a.key[position]) return false;
  }
  return true;
}

ConstantPatterns::Projection ConstantPatterns::project(std::span<const std::string_view> key) const {
  uint64_t hash = 0;
  for (const uint32_t position : fixed_) hash = mix(hash + hash_bytes(key[position]));
  return {key, &fixed_, hash};
}

const ConstantPatterns::Member* ConstantPatterns::find(std::span<const std::string_view> key) const {
  const auto found = members_.find(project(key));
  return found == members_.end() ? nullptr : &*found;
}

const ConstantPatterns::Member& ConstantPatterns::insert(const KeyPattern& pattern, Remembered remembered) {
  const std::vector<std::string_view> key = lows(pattern);
  Constants constants{"", project(key).hash};
  for (const uint32_t position : fixed_) {
    const Length length = static_cast<Length>(key[position].size());
    SJ_CHECK(length == key[position].size(), "a constant is longer than 4 GiB");
    constants.bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    constants.bytes.append(key[position]);
  }
  const auto [member, added] = members_.emplace(std::move(constants), remembered);
  SJ_CHECK(added, "pattern is remembered twice");
  for (size_t place = 0; place < orders_.size(); ++place) {
    if (orders_[place]) orders_[place]->add(constant_at(member->first.bytes, place), &*member);
  }
  return *member;
}

void ConstantPatterns::erase(const Member& member) {
  for (size_t place = 0; place < orders_.size(); ++place) {
    if (orders_[place]) orders_[place]->remove(constant_at(member.first.bytes, place), &member);
  }
  members_.erase(members_.find(member.first));
  // A table that was once large must not stay so; rehash(0) shrinks to what the members need.
  if (members_.bucket_count() > 64 && members_.size() < members_.bucket_count() / 8) members_.rehash(0);
}

ConstantPatterns::Order& ConstantPatterns::order(size_t place) {
  if (orders_.empty()) orders_.resize(fixed_.size());
  if (!orders_[place]) {
    orders_[place] = std::make_unique<Order>();
    for (const Member& member : members_)
      orders_[place]->add(constant_at(member.first.bytes, place), &member);
  }
  return *orders_[place];
}

std::vector<const ConstantPatterns::Member*> ConstantPatterns::inside(const KeyPattern& wider) {
  std::vector<const Member*> result;
  size_t constants = 0, ranges = 0, constant_place = 0, range_place = 0;
  for (size_t place = fixed_.size(); place-- > 0;) {
    const Kind kind = wider.attributes[fixed_[place]].kind;
    if (kind == Kind::kConstant) ++constants, constant_place = place;
    if (kind == Kind::kRange) ++ranges, range_place = place;
  }
  const auto narrow = [](const AttributePattern& attribute) { return attribute.kind != Kind::kAny; };
  const auto narrowed = std::ranges::count_if(wider.attributes, narrow);
  // Our members leave every attribute that is not fixed to any; nothing narrower can contain them.
  if (static_cast<size_t>(narrowed) != constants + ranges) return result;
  if (constants == fixed_.size()) {
    if (const Member* member = find(lows(wider))) result.push_back(member);
  } else if (constants + ranges == 0) {
    for (const Member& member : members_) result.push_back(&member);
  } else {
    const size_t place = constants > 0 ? constant_place : range_place;
    order(place).visit(wider.attributes[fixed_[place]], [&](const Member* member) {
      std::string_view rest = member->first.bytes;
      for (const uint32_t position : fixed_) {
        if (!wider.attributes[position].matches(next_constant(rest))) return;
      }
      result.push_back(member);
    });
  }
  return result;
}

KeyPattern ConstantPatterns::pattern(const Member& member) const {
  KeyPattern pattern;
  pattern.attributes.resize(width_);
  std::string_view rest = member.first.bytes;
  for (const uint32_t position : fixed_) {
    pattern.attributes[position] = AttributePattern::constant(std::string(next_constant(rest)));
  }
  return pattern;
}

size_t ConstantPatterns::memory_bytes() const {
  // A node: the link to the next, the allocator's word, the member; short constants are inside their
  // std::string.
  size_t bytes = sizeof(*this) + members_.bucket_count() * sizeof(void*);
  bytes += members_.size() * (2 * sizeof(void*) + sizeof(Member));
  for (const Member& member : members_) {
    const size_t capacity = member.first.bytes.capacity();
    if (capacity >= sizeof(std::string) / 2) bytes += capacity + 1;
  }
  for (const auto& order : orders_) bytes += order ? order->memory_bytes() : 0;
  return bytes;
}

std::string ConstantPatterns::validate() const {
  for (const Member& member : members_) {
    const KeyPattern whole = pattern(member);
    if (find(lows(whole)) != &member) return "remembered constants are not found by their key";
    for (size_t place = 0; place < orders_.size(); ++place) {
      if (orders_[place] && !orders_[place]->contains(constant_at(member.first.bytes, place), &member)) {
        return "remembered constants are missing in an order";
      }
    }
  }
  for (const auto& order : orders_) {
    if (order && order->size() != members_.size()) return "an order holds constants that are forgotten";
  }
  return "";
}

}  // namespace streamjoin
