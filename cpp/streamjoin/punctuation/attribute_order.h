// AttributeOrder: things ordered by one attribute's bytes, to find those that match an attribute's pattern.
//
//   "01 de 00 00" -> 4, 9      "01 fr 00 00" -> 1      "01 it 00 00" -> 0, 7
//
// Keeps its own copy of the bytes, so it depends on nobody's memory. Id: anything that std::less orders and
// that is cheap to copy.
// Cost: add and remove log n; visit log n plus what it visits. One thread.

#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "streamjoin/punctuation/key_pattern.h"

namespace streamjoin {

template <typename Id>
class AttributeOrder {
 public:
  void add(std::string_view attribute, Id id) { items_.insert(Item{std::string(attribute), id}); }
  void remove(std::string_view attribute, Id id) {
    const auto item = items_.find(View{attribute, id});
    if (item != items_.end()) items_.erase(item);
  }
  void clear() { items_.clear(); }

  /// Calls `f(id)` for each thing whose attribute matches, in the order of the attribute. `f` must not change
  /// this order.
  template <typename F>
  void visit(const AttributePattern& pattern, F&& f) const {
    // The smallest value is one byte above null, so a range starts behind all nulls.
    static constexpr std::string_view first_value("\1", 1);
    std::string_view low;
    if (pattern.kind != AttributePattern::Kind::kAny) low = pattern.low;
    if (pattern.kind == AttributePattern::Kind::kRange && (pattern.low_open || low < first_value))
      low = first_value;
    for (auto item = items_.lower_bound(low); item != items_.end() && pattern.matches(item->attribute);
         ++item) {
      f(item->id);
    }
  }

  bool contains(std::string_view attribute, Id id) const { return items_.contains(View{attribute, id}); }
  size_t size() const { return items_.size(); }
  size_t memory_bytes() const {
    // Four words of links and colour and the allocator's word a node; bytes that fit inside a std::string are
    // in it.
    constexpr size_t inside = sizeof(std::string) / 2;
    size_t bytes = items_.size() * (5 * sizeof(void*) + sizeof(Item));
    for (const Item& item : items_) bytes += item.attribute.size() < inside ? 0 : item.attribute.size() + 1;
    return bytes;
  }

 private:
  struct Item {
    std::string attribute;
    Id id;
  };
  struct View {
    std::string_view attribute;
    Id id;
  };
  struct Before {
    using is_transparent = void;
    static bool before(std::string_view a, Id i, std::string_view b, Id j) {
      const int order = a.compare(b);
      return order != 0 ? order < 0 : std::less<Id>()(i, j);
    }
    bool operator()(const Item& a, const Item& b) const {
      return before(a.attribute, a.id, b.attribute, b.id);
    }
    bool operator()(const Item& a, const View& b) const {
      return before(a.attribute, a.id, b.attribute, b.id);
    }
    bool operator()(const View& a, const Item& b) const {
      return before(a.attribute, a.id, b.attribute, b.id);
    }
    bool operator()(const Item& a, std::string_view b) const { return a.attribute < b; }
    bool operator()(std::string_view a, const Item& b) const { return a < b.attribute; }
  };

  std::set<Item, Before> items_;
};

}  // namespace streamjoin
