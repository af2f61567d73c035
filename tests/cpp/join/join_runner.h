// JoinRunner: drives a BinaryJoin by a script and speaks of rows by their ids, whatever batches they lie in
// by now.

#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "join/random_join_script.h"

namespace streamjoin {

class JoinRunner {
 public:
  struct Said {
    std::vector<OraclePair> rows;
    std::vector<std::tuple<int, bool, Code, Code, Time, Time>> punctuations;
    std::vector<size_t> late;
    std::vector<size_t> violations;
    bool operator==(const Said&) const = default;
  };
  struct Thrown {};
  enum class Ask { kAsTheScript, kAlways, kThrow };

  explicit JoinRunner(const JoinScript& script)
      : script_(script), join_(std::make_unique<BinaryJoin>(script.options, nullptr)) {}

  BinaryJoin& join() { return *join_; }

  Said push(Side side, std::span<const OracleRow> rows, Ask ask = Ask::kAsTheScript) {
    return push(side, rows, {}, ask);
  }
  Said push(Side side, std::span<const OracleRow> rows, std::span<const KeyPunctuation> punctuations,
            Ask ask = Ask::kAsTheScript) {
    std::vector<Time> times;
    std::vector<Code> keys;
    std::vector<uint8_t> nulls;
    std::vector<RowRef> refs;
    bool any_null = false;
    const uint32_t batch = ++batches_;
    const bool lies_elsewhere = batch % 2 == 0;  // every other batch says itself where its rows lie
    for (const OracleRow& row : rows) {
      const auto number = static_cast<uint32_t>(times.size());
      refs.push_back(lies_elsewhere ? RowRef{batch + number % 2 * kFarBatch, 7 + 3 * number}
                                    : RowRef{batch, number});
      ids_[side][{refs.back().batch, refs.back().row}] = row.id;
      times.push_back(row.time);
      keys.push_back(row.key);
      nulls.push_back(row.null_key);
      any_null |= row.null_key;
    }
    Asked predicate(*this, ask);
    Predicate* given = ask == Ask::kAsTheScript && script_.condition == 0 ? nullptr : &predicate;
    Results results;
    join_->push(side,
                {batch, times, keys, any_null ? nulls.data() : nullptr,
                 lies_elsewhere ? refs.data() : nullptr, punctuations},
                given, results);
    return said(results);
  }

  Said take(const ScriptStep& step) {
    Results results;
    switch (step.kind) {
      case ScriptStep::Kind::kPush:
        return push(step.side, step.rows, step.punctuations);
      case ScriptStep::Kind::kPunctuate:
        join_->punctuate(step.side, step.low, step.time, results);
        break;
      case ScriptStep::Kind::kPunctuateRange:
        join_->punctuate_range(step.side, step.low, step.high, step.time, results);
        break;
      case ScriptStep::Kind::kEndStream:
        join_->end(step.side, step.time, results);
        break;
      case ScriptStep::Kind::kAdvance:
        join_->advance(step.side, step.time, results);
        break;
      case ScriptStep::Kind::kCompact:
        compact(step.side, ++batches_);
        break;
      case ScriptStep::Kind::kReload:
        reload();
        break;
    }
    return said(results);
  }

  Said finish() {
    Results results;
    join_->finish(std::max(join_->clock(kLeft), join_->clock(kRight)), results);
    return said(results);
  }

  std::string saved() {
    ArchiveWriter out;
    join_->save(out);
    return out.take();
  }

 private:
  class Asked : public Predicate {
   public:
    Asked(const JoinRunner& runner, Ask ask) : runner_(runner), ask_(ask) {}
    void evaluate(std::span<const ResultRow> candidates, std::span<uint8_t> holds) override {
      if (ask_ == Ask::kThrow) throw Thrown{};
      for (size_t i = 0; i < candidates.size(); ++i) {
        const auto [left, right] = runner_.pair_of(candidates[i]);
        holds[i] = ask_ == Ask::kAlways || runner_.script_.holds(left, right);
      }
    }

   private:
    const JoinRunner& runner_;
    const Ask ask_;
  };

  static constexpr uint32_t kFarBatch = 1000;

  size_t id_of(Side side, RowRef row) const {
    return row == kNoRow ? kMissing : ids_[side].at({row.batch, row.row});
  }
  OraclePair pair_of(const ResultRow& row) const {
    return {id_of(kLeft, row.left), id_of(kRight, row.right)};
  }

  Said said(const Results& results) const {
    Said said;
    for (const ResultRow& row : results.rows) said.rows.push_back(pair_of(row));
    for (const OutputPunctuation& one : results.punctuations) {
      said.punctuations.emplace_back(static_cast<int>(one.kind), one.any, one.low, one.high, one.time,
                                     one.until);
    }
    for (const RefusedRow& row : results.late) said.late.push_back(id_of(row.side, row.row));
    for (const RefusedRow& row : results.violations) said.violations.push_back(id_of(row.side, row.row));
    return said;
  }

  void compact(Side side, uint32_t batch) {
    std::map<std::pair<uint32_t, uint32_t>, size_t> moved;
    const std::vector<RowRef> from = join_->state(side).move_rows_to(batch);
    for (uint32_t row = 0; row < from.size(); ++row) moved[{batch, row}] = id_of(side, from[row]);
    ids_[side] = std::move(moved);
  }

  // As a snapshot is taken: the payload is written in the order of the compacted batch, then the state.
  void reload() {
    for (const Side side : {kLeft, kRight}) compact(side, 0);
    const std::string bytes = saved();
    ArchiveReader in(bytes);
    join_ = std::make_unique<BinaryJoin>(script_.options, nullptr);
    join_->load(in);
  }

  const JoinScript& script_;
  std::unique_ptr<BinaryJoin> join_;
  std::array<std::map<std::pair<uint32_t, uint32_t>, size_t>, 2> ids_;
  uint32_t batches_ = 0;
};

}  // namespace streamjoin
