// StreamPromises: what one stream of an m-way join has promised and not yet forgotten, on any of its classes.
//
//   classes of the stream       0 (x)      1 (y, strings)      2 (z)
//   table {0}         codes     [3 === 9] [12]                  one integer class: a RangeSet
//   table {0, 2}      bytes     (5, *, 7)  (5, *, 8)            anything else: a PatternStore
//
// One table per set of classes that a promise speaks of. A tuple in the making knows the values of some
// classes only; a promise says something about it if it speaks of no others: `known` has a bit per class.
// Cost: covers() a lookup per table that applies. Owned by MultiPunctuations; one thread.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/base/code.h"
#include "streamjoin/base/time.h"
#include "streamjoin/punctuation/key_pattern.h"
#include "streamjoin/punctuation/pattern_store.h"
#include "streamjoin/punctuation/range_set.h"
#include "streamjoin/state/key_dictionary.h"

namespace streamjoin {

/// The codes that a pattern of an integer class matches.
struct CodeRange {
  Code low;
  Code high;
};
CodeRange code_range(const AttributePattern& pattern);
AttributePattern pattern_of(CodeRange range);
/// A code as the bytes of its attribute; `scratch` lends the memory where codes are values.
std::string_view bytes_of(Code code, const KeyDictionary* dictionary, std::string& scratch);

class StreamPromises {
 public:
  /// A bit per class of the stream.
  using Positions = uint64_t;
  static constexpr size_t kMostPositions = 64;

  /// `dictionaries`: per class of the stream, nullptr where codes are values.
  StreamPromises(std::vector<const KeyDictionary*> dictionaries, Duration lifespan);

  bool any() const { return held() > 0; }
  Duration lifespan() const { return lifespan_; }
  /// Whether a promise made at `time` is still worth remembering.
  bool takes(Time time, Time clock) const { return clock <= end_of(time, lifespan_); }

  /// Whether no row comes any more that has these codes in the classes that are `known`.
  bool covers(std::span<const Code> codes, Positions known) const;
  /// Until when; kBeginning if it is not covered.
  Time covered_until(std::span<const Code> codes, Positions known) const;
  /// Whether one promise, of no other classes than `pattern` speaks of, contains it.
  bool contains(const KeyPattern& pattern) const;

  /// Patterns have one attribute per class of the stream and are neither empty nor `*` everywhere.
  void remember(const KeyPattern& pattern, Time time);
  void forget(const KeyPattern& pattern);
  void expire(Time clock);
  void clear() { tables_.clear(); }

  /// Promised codes of one integer class by itself, or nullptr.
  RangeSet* codes_of(size_t position);
  /// Calls `f(pattern)` for every promise that is not in a table of codes.
  template <typename F>
  void for_each_pattern(F&& f) const {
    for (const Table& table : tables_) {
      table.patterns.for_each([&](const KeyPattern& pattern, Time, Time) { f(spread(table, pattern)); });
    }
  }

  /// Ranges and patterns remembered.
  size_t held() const;
  size_t memory_bytes() const;
  std::string validate() const;
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  struct Table {
    Positions set;
    std::vector<size_t> positions;
    bool codes;  // one integer class
    RangeSet ranges;
    PatternStore patterns;  // of keys that have these positions only
  };

  static Positions set_of(const KeyPattern& pattern);
  Table& table(Positions set);
  KeyPattern project(const Table& table, const KeyPattern& pattern) const;
  KeyPattern spread(const Table& table, const KeyPattern& projected) const;
  void attributes_of(const Table& table, std::span<const Code> codes) const;

  std::vector<const KeyDictionary*> dictionaries_;
  Duration lifespan_;
  std::vector<Table> tables_;
  mutable std::vector<std::string> scratch_;
  mutable std::vector<std::string_view> attributes_;
};

}  // namespace streamjoin
