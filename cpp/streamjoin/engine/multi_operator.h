// MultiOperator: the join of m streams as Python and Spark call it, one batch at a time.
//
//   key columns of a class -> encoder, dictionary of the class -> codes -> MultiJoin -> row references
//
// It knows keys of every kind; the join knows codes alone. It knows no payload: rows are references to
// numbered batches that the caller keeps until `take_empty_batches` names them. A call that throws has
// changed nothing. One thread.

#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "streamjoin/engine/disorder_input.h"
#include "streamjoin/engine/key_encoder.h"
#include "streamjoin/engine/output.h"
#include "streamjoin/join/multi_join.h"
#include "streamjoin/state/key_dictionary.h"

namespace streamjoin {

/// Columns whose values are equal in a result wherever a stream has them.
struct AttributeClass {
  std::vector<AttributeType> types;
  std::vector<bool> null_safe;
};

struct MultiOperatorOptions {
  /// Its classes are made from `attributes`.
  MultiJoinOptions join;
  std::vector<AttributeClass> classes;
  /// Per stream, the class of each key in the order they are pushed. A class named twice must have equal keys
  /// in a row, else the row matches nothing.
  std::vector<std::vector<size_t>> attributes;
  /// Without it each stream comes in order by itself.
  std::optional<DisorderOptions> disorder = std::nullopt;
};

struct MultiOutput {
  size_t streams;
  std::vector<RowRef> rows;  // one per stream for each result
  std::vector<RefusedRow> late;
  std::vector<RefusedRow> violations;
  OutputPunctuations punctuations;
};

class MultiOperator {
 public:
  explicit MultiOperator(MultiOperatorOptions options);

  /// Joins the rows of a batch; `keys` has per attribute of the stream its columns. Throws RefusedBatch under
  /// an error policy, and whatever a predicate throws.
  MultiOutput push(size_t stream, uint32_t batch, std::span<const Time> times,
                   std::span<const std::vector<KeyColumn>> keys, std::vector<NumericColumn> values);
  /// The results that `push` would give, and nothing else; throws what it would throw. For rows in order.
  MultiOutput rehearse(size_t stream, uint32_t batch, std::span<const Time> times,
                       std::span<const std::vector<KeyColumn>> keys, std::vector<NumericColumn> values);
  /// No row of the stream that matches one of the patterns comes any more. They have one pattern per
  /// attribute of the stream, as they are pushed; `*` everywhere ends the stream. `time` is kBeginning if the
  /// source knows none.
  MultiOutput punctuate(size_t stream, std::vector<KeyPattern> patterns, Time time);
  /// No row of the stream at or before `time` comes any more.
  MultiOutput advance(size_t stream, Time time);
  /// All streams have ended.
  MultiOutput finish();
  /// The wall clock, for streams that are idle by it. What comes of it is given out by the next call.
  void look_at_clock(Time now);
  /// Whether the rows of the last push are here although it threw: they wait, and join in a later call.
  bool took_batch() const { return disorder_ && disorder_->took_batch(); }

  // Rows that wait for their turn count as rows of their batch.
  std::vector<uint32_t> take_empty_batches(size_t stream);
  size_t rows_of_batch(size_t stream, uint32_t batch) const;
  size_t live_rows(size_t stream) const;
  std::vector<RowRef> move_rows_to(size_t stream, uint32_t batch);
  /// Null where streams come in order.
  const DisorderStage* disorder() const { return disorder_ ? &disorder_->stage() : nullptr; }

  MultiJoin& join() { return *join_; }
  const MultiJoin& join() const { return *join_; }
  size_t streams() const { return join_->streams(); }
  const std::vector<size_t>& attributes(size_t stream) const { return attributes_[stream]; }
  const std::vector<AttributeType>& types(size_t attribute_class) const {
    return spaces_[attribute_class]->encoder.types();
  }

  /// Frees dead rows, so that sizes are those of live ones.
  void free_dead_rows();
  uint64_t dictionary_entries() const;
  uint64_t memory_bytes() const;
  std::string validate() const;
  /// Everything but the payload. The rows of a stream are those of `move_rows_to`, in that order, as batch 0.
  std::string save();
  /// Replaces the state of a new operator with the same options. Throws DamagedArchive; the operator is then
  /// of no further use.
  void load(std::string_view bytes);

 private:
  /// The codes of one class.
  struct CodeSpace {
    KeyEncoder encoder;
    KeyDictionary dictionary;
  };
  /// Codes of a batch, held in their dictionaries until the call is over.
  class HeldCodes;
  /// A batch as the join takes it, with what it refers to.
  struct EncodedBatch;

  /// Rows in order, and what they leave until a call gives it out.
  class Ordered;

  void encode(size_t stream, std::span<const std::vector<KeyColumn>> keys, EncodedBatch& batch);
  void expect_disorder(DisorderOptions options, LatePolicy late);
  void push_disordered(size_t stream, const StreamBatch& rows);
  void punctuate_disordered(size_t stream, std::vector<KeyPattern> patterns, Time time);
  MultiResults finish_disordered();
  void save_waiting(ArchiveWriter& out);
  void load_waiting(ArchiveReader& in);
  MultiOutput give_out();
  void apply(size_t stream, std::vector<KeyPattern> patterns, Time time, MultiResults& results);
  void punctuate_one(size_t stream, const KeyPattern& pattern, Time time, MultiResults& results);
  void check_loaded_references() const;
  MultiOutput output_of(MultiResults&& results) const;

  std::vector<std::vector<size_t>> attributes_;
  std::vector<std::unique_ptr<CodeSpace>> spaces_;
  std::unique_ptr<MultiJoin> join_;
  std::shared_ptr<Ordered> ordered_;  // shared, for only one source knows the type
  std::unique_ptr<DisorderInput> disorder_;
};

}  // namespace streamjoin
