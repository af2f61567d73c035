// MultiPunctuations: what an m-way join makes of promises on values: which rows may go, which need not be
// stored, which break a promise, and what can be promised about the results.
//
//   punctuation of s  ->  remembered  ->  rows that were waiting for it are judged  ->  purged, or wait anew
//                                     ->  s holds no row of it: its values are closed in the output
//
// Eager: every stored row has a witness (witnesses.h), and a promise leads from the rows with its values to
// those whose witness it closes. So after each call exactly the rows are stored that may still be needed.
// Lazy: promises are only remembered, and all rows are judged together once as many have come as a quarter of
// the rows that were left the last time: less work for a row, more rows.
//
// Promises are forgotten when their lifespan is over, or when nobody can ask for them any more: for one of
// the classes of the promise, every other stream that has it has promised the same values (by no other
// classes) and stores no row of them. That is looked for whenever their number may have doubled.
//
// Cost: of a promise, the rows it concerns and what ChainedPurge says of each; forgetting is amortised O(1).
// Owned by MultiJoin, whose parts it borrows; one thread.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "streamjoin/base/archive.h"
#include "streamjoin/join/binary_join.h"
#include "streamjoin/join/chained_purge.h"
#include "streamjoin/join/results.h"
#include "streamjoin/join/stream_promises.h"
#include "streamjoin/join/window_matrix.h"
#include "streamjoin/join/witnesses.h"
#include "streamjoin/state/stream_state.h"

namespace streamjoin {

class ClassPattern;

enum class PurgeMode : uint8_t { kEager, kLazy, kOff };

/// Which promises the rows of a stream imply, on which of its classes.
struct ImpliedPromise {
  Implies kind = Implies::kNothing;
  std::vector<size_t> positions;
};

struct PunctuationOptions {
  /// Without, the join takes no promises on values.
  bool used = false;
  /// kLazy is for promises that last: one whose lifespan ends before rows are judged purges nothing.
  /// kOff is for measurements: promises are kept and violations counted, but nothing is purged by them.
  PurgeMode purge = PurgeMode::kEager;
  std::vector<Duration> lifespans;      // per stream; kEnd: for ever
  std::vector<ImpliedPromise> implied;  // per stream
};

/// No result emitted after this one has, in all of these classes, values that match.
struct ClosedPattern {
  PropagationKind kind;
  std::vector<std::pair<size_t, AttributePattern>> classes;
  Time time;
  Time until;
};

/// The parts of a join that its punctuations need.
struct JoinParts {
  const WindowMatrix& matrix;
  const std::vector<std::vector<size_t>>& classes;
  std::span<const StreamState* const> readable;
  std::vector<StreamState*> states;
  const std::vector<Time>& clocks;
  std::vector<SideCounters>& counters;
  std::vector<const KeyDictionary*> dictionaries;  // by class
};

struct ArrivingRow {
  Time time;
  RowRef ref;
  std::span<const Code> keys;
  std::span<const NumericValue> values;
  bool can_match_later;  // by its time
};

class MultiPunctuations {
 public:
  using Member = ChainedPurge::Member;

  MultiPunctuations(PunctuationOptions options, JoinParts parts);

  /// Finds the violations of a batch before anything has changed, with the promises that its own rows imply.
  class Rehearsal {
   public:
    Rehearsal(const MultiPunctuations& punctuations, size_t stream);
    /// Whether the stream has promised, by the time its clock stands at `clock`, that no such row comes.
    bool violates(std::span<const Code> keys, Time clock);
    /// The row goes on to be joined.
    void pass(std::span<const Code> keys, Time time);

   private:
    std::vector<Code> implied_key(std::span<const Code> keys) const;

    const MultiPunctuations& punctuations_;
    size_t stream_;
    std::map<std::vector<Code>, Time> implied_;  // until when
    std::optional<std::vector<Code>> cluster_;
  };
  bool implies_promises(size_t stream) const { return options_.implied[stream].kind != Implies::kNothing; }

  /// Stores a row, or not, because no partner can come any more; makes the promises that it implies. The
  /// clock of its stream has been raised.
  void take_row(size_t stream, const ArrivingRow& row);
  /// `pattern` has one attribute per class of the stream and is neither empty nor `*`.
  void punctuate(size_t stream, const KeyPattern& pattern, Time time);
  /// The clock of the stream has risen; kEnd: it has ended.
  void clock_raised(size_t stream, Time time);
  /// These rows of a stream, older than `limit`, are about to be invalidated.
  void before_invalidation(size_t stream, Time limit);
  /// No result comes any more.
  void end();

  std::vector<ClosedPattern> take_closed() { return std::exchange(closed_, {}); }
  size_t promises_held(size_t stream) const { return promises_[stream].held(); }

  size_t memory_bytes() const;
  std::string validate();
  void save(ArchiveWriter& out) const;
  void load(ArchiveReader& in);

 private:
  static constexpr size_t kLeastBatch = 256;  // promises before rows are judged together
  static constexpr size_t kNobody = ~size_t{0};
  static constexpr size_t kLeastHeld = 256;  // promises before they are looked through

  /// Promised values of a stream that still has rows of them.
  struct Pending {
    KeyPattern pattern;
    size_t open;  // rows
    Time until;
  };
  /// A row to be judged, unless that has been done since.
  struct Queued {
    Member row;
    uint32_t version;
  };
  struct HashCodes {
    size_t operator()(const std::vector<Code>& codes) const;
  };
  struct PendingOfStream {
    /// By the positions that are fixed, then by their codes; rows hold those.
    std::map<StreamPromises::Positions, std::unordered_map<std::vector<Code>, Pending, HashCodes>> constants;
    std::vector<Pending> others;
  };

  // What must go (multi_punctuations.cc).
  KeyPattern implied_pattern(size_t stream, std::span<const Code> keys) const;
  void enter_cluster(size_t stream, const ArrivingRow& row);
  void queue(Member row) { queue_.push_back({row, witnesses_.version(row)}); }
  void queue_concerned(size_t stream, const ClassPattern& pattern);
  bool closes_witness(size_t stream, const ClassPattern& pattern, Member owner) const;
  void queue_all();
  void judge_queued();
  void watch(Member owner, std::span<const Member> members);
  void leave(Member row);
  void purge_some();

  // What can be said of the results (closed_values.cc).
  void close_or_wait(size_t stream, const KeyPattern& pattern, const ClassPattern& compiled, Time time);
  void wait_to_close(size_t stream, Pending pending);
  void close(PropagationKind kind, size_t stream, const KeyPattern& pattern, Time time, Time until);
  bool closed_elsewhere(size_t stream, const KeyPattern& pattern) const;
  bool may_wait_to_close(size_t stream, const ClassPattern& pattern) const;
  template <typename F>
  void for_each_pending(size_t stream, std::span<const Code> keys, F&& f);
  void note_stored(size_t stream, std::span<const Code> keys);
  void note_left(size_t stream, uint32_t node);

  // Which promises nobody waits for any more (answered_promises.cc).
  KeyPattern translated(size_t from, const KeyPattern& pattern, size_t to) const;
  void forget_answered();
  void forget_answered_codes(size_t number);
  bool answered(size_t stream, const KeyPattern& pattern) const;

  const PunctuationOptions options_;
  const JoinParts parts_;
  std::vector<StreamPromises> promises_;
  ChainedPurge chain_;
  Witnesses witnesses_;
  std::vector<std::optional<KeyPattern>> clusters_;  // per stream
  std::vector<PendingOfStream> pending_;
  std::vector<ClosedPattern> closed_;
  std::vector<Queued> queue_;
  bool mixed_ = false;  // windows bound some pairs of streams and not others
  bool ended_ = false;
  Time now_ = kBeginning;
  size_t punctuating_ = kNobody;  // the stream whose promise is remembered, but closes nothing yet
  size_t events_ = 0;             // lazy: until rows are judged
  size_t since_forgetting_ = 0;
  size_t held_then_ = 0;
};

}  // namespace streamjoin
