// KeySpace: turns the key columns of a batch into codes, and knows which keys the remembered patterns speak
// of.
//
//   key columns -> bytes -> code        each row of a batch holds its code until the batch is done, each
//   I-Node for as long as it is pattern     -> codes it matches     keys known now; a key that comes later is
//   compared with the patterns when it comes
//
// Where keys are integers (direct), a key is its own code and nothing is kept here.
// Invariant: a code is covered in the join, per stream, exactly if a remembered pattern of that stream
// matches its key. Owned by the operator, beside the join whose codes it makes. One thread.

#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/engine/key_encoder.h"
#include "streamjoin/join/binary_join.h"
#include "streamjoin/punctuation/key_pattern.h"
#include "streamjoin/punctuation/pattern_store.h"
#include "streamjoin/state/key_dictionary.h"
#include "streamjoin/state/key_order.h"

namespace streamjoin {

class KeySpace {
 public:
  explicit KeySpace(KeyEncoder encoder) : encoder_(std::move(encoder)) {}

  bool direct() const { return encoder_.direct(); }
  const KeyEncoder& encoder() const { return encoder_; }
  KeyDictionary* dictionary() { return direct() ? nullptr : &dictionary_; }
  size_t entries() const { return dictionary_.size(); }

  /// The codes of a batch, each held once more than before; `let_go` gives them back.
  void codes_of(std::span<const KeyColumn> columns, size_t rows, BinaryJoin& join, std::vector<Code>& codes);
  /// The code of one key, held; `key` is its bytes.
  Code hold(std::string_view key, BinaryJoin& join);
  void let_go(std::span<const Code> codes, BinaryJoin& join);

  std::string_view bytes(Code code) const { return dictionary_.bytes(code); }
  void split(Code code, std::vector<std::string_view>& attributes) const {
    encoder_.splitter().split(dictionary_.bytes(code), attributes);
  }

  /// Known keys that the pattern matches, in the order of their bytes (codes would depend on history).
  std::vector<Code> matching(const KeyPattern& pattern);

  PatternStore& patterns(Side side) { return patterns_[side]; }
  const PatternStore& patterns(Side side) const { return patterns_[side]; }
  /// After patterns of `side` were forgotten: takes back the cover of the keys that none matches any more.
  void recover(Side side, std::span<const Code> codes, BinaryJoin& join);

  size_t memory_bytes() const;
  std::string validate() const;
  void save(ArchiveWriter& out) const;
  /// The join is to be loaded next, then `after_load` called.
  void load(ArchiveReader& in);
  void after_load(BinaryJoin& join);
  /// DamagedArchive if a pattern that was loaded does not speak of keys of these types.
  void check_loaded(const KeyPattern& pattern) const;

 private:
  void welcome(Code code, BinaryJoin& join);
  void release(Code code, BinaryJoin& join);
  Time covered_until(Side side, std::span<const std::string_view> attributes, const BinaryJoin& join) const;

  KeyEncoder encoder_;
  KeyDictionary dictionary_;
  KeyOrder order_;
  std::array<PatternStore, 2> patterns_;
  std::vector<std::pair<Code, uint32_t>> saved_references_;
  std::string arena_;
  std::vector<uint64_t> ends_;
  std::vector<uint64_t> hashes_;
  std::vector<std::string_view> attributes_;
};

}  // namespace streamjoin
