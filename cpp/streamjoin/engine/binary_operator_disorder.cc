// BinaryOperator where streams come out of order: rows and punctuations wait in DisorderInput, and join from
// there.

#include <algorithm>

#include "streamjoin/engine/binary_operator.h"
#include "streamjoin/engine/waiting_punctuations.h"

namespace streamjoin {

class BinaryOperator::Ordered : public OrderedJoin {
 public:
  Ordered(BinaryOperator& owner, std::shared_ptr<Predicate> predicate)
      : owner_(owner), join_(*owner.join_), predicate_(std::move(predicate)) {}

  void join(size_t stream, const StreamBatch& rows) override {
    owner_.expire_patterns();
    join_.push(static_cast<Side>(stream), row_batch(rows), predicate_.get(), results_);
  }
  bool insert_behind(size_t stream, const StreamBatch& row, Time clock) override {
    return join_.insert_behind(static_cast<Side>(stream), row_batch(row), 0, clock, results_);
  }
  bool is_late(size_t stream, Time time, Time clock) const override {
    return clock > join_.options().bounds.reach(static_cast<Side>(stream), time);
  }
  void refuse(size_t stream, RowRef row, Duration late_by) override {
    results_.late.push_back({static_cast<Side>(stream), row, late_by});
  }
  void give_up(size_t stream, RowRef row) override {
    join_.give_up(static_cast<Side>(stream), row, results_);
  }
  void punctuate(size_t stream, uint32_t punctuation) override {
    auto [patterns, time] = waiting_.take(punctuation);
    owner_.apply(static_cast<Side>(stream), std::move(patterns), time, results_);
  }
  void raise_clocks(Time clock) override {
    for (const Side side : {kLeft, kRight}) join_.advance(side, clock, results_);
  }
  void let_go(size_t, size_t, std::span<const Code> codes) override {
    if (!owner_.keys_.direct()) joined_.insert(joined_.end(), codes.begin(), codes.end());
  }
  std::span<RowRef> results() override {
    static_assert(sizeof(ResultRow) == 2 * sizeof(RowRef));
    return {reinterpret_cast<RowRef*>(results_.rows.data()), results_.rows.size() * 2};
  }

  WaitingPunctuations& waiting() { return waiting_; }
  Results take_results() { return std::exchange(results_, {}); }
  /// Codes are let go only when what was said of their keys has been given out.
  void release_codes() { owner_.keys_.let_go(std::exchange(joined_, {}), join_); }

 private:
  static RowBatch row_batch(const StreamBatch& rows) {
    return {rows.number, rows.times, rows.keys[0], rows.unmatchable, rows.refs};
  }

  BinaryOperator& owner_;
  BinaryJoin& join_;
  std::shared_ptr<Predicate> predicate_;
  Results results_;
  std::vector<Code> joined_;
  WaitingPunctuations waiting_;
};

void BinaryOperator::expect_disorder(OperatorOptions options) {
  ordered_ = std::make_shared<Ordered>(*this, std::move(options.waiting_predicate));
  DisorderInputOptions input{std::move(*options.disorder), options.join.late, {1, 1}, {0, 0}};
  disorder_ = std::make_unique<DisorderInput>(std::move(input), *ordered_);
}

Output BinaryOperator::push_disordered(Side side, uint32_t batch, std::span<const Time> times,
                                       std::span<const KeyColumn> keys, const uint8_t* null_keys) {
  disorder_->resume();
  disorder_->check_late(side, times);
  if (keys_.direct()) {
    const std::span<const Code> codes(static_cast<const Code*>(keys[0].values), times.size());
    disorder_->push(side, {batch, times, {codes}, null_keys, {}});
  } else {
    keys_.codes_of(keys, times.size(), *join_, codes_);  // held by the rows that wait, from here on
    disorder_->push(side, {batch, times, {codes_}, null_keys, {}});
  }
  return give_out();
}

Output BinaryOperator::punctuate_disordered(Side side, std::vector<KeyPattern> patterns, Time time) {
  disorder_->resume();
  ++join_->counters(side).punctuations_in;
  if (time == kBeginning) time = disorder_->stage().local_time(side);
  disorder_->punctuate(side, time, ordered_->waiting().keep(std::move(patterns), time));
  return give_out();
}

Output BinaryOperator::advance_disordered(Side side, Time time) {
  disorder_->resume();
  expire_patterns();
  disorder_->advance(side, time);
  return give_out();
}

void BinaryOperator::look_at_clock(Time now) {
  if (!disorder_) return;
  disorder_->resume();
  disorder_->look_at_clock(now);
}

Results BinaryOperator::finish_disordered() {
  disorder_->resume();
  disorder_->finish();
  disorder_->results_taken();
  return ordered_->take_results();
}

Output BinaryOperator::give_out() {
  disorder_->results_taken();
  Output output = finish_call(ordered_->take_results());
  ordered_->release_codes();
  return output;
}

std::vector<uint32_t> BinaryOperator::take_empty_batches(Side side) {
  std::vector<uint32_t> batches = join_->state(side).take_empty_batches();
  if (!disorder_) return batches;
  const std::vector<uint32_t> drained = disorder_->take_drained_batches(side);
  batches.insert(batches.end(), drained.begin(), drained.end());
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  std::erase_if(batches, [&](uint32_t batch) { return rows_of_batch(side, batch) > 0; });
  return batches;
}

size_t BinaryOperator::rows_of_batch(Side side, uint32_t batch) const {
  return join_->state(side).rows_of_batch(batch) + (disorder_ ? disorder_->rows_of_batch(side, batch) : 0);
}

size_t BinaryOperator::live_rows(Side side) const {
  return join_->state(side).live_rows() + (disorder_ ? disorder_->waiting_rows(side) : 0);
}

std::vector<RowRef> BinaryOperator::move_rows_to(Side side, uint32_t batch) {
  std::vector<RowRef> were = join_->state(side).move_rows_to(batch);
  if (!disorder_) return were;
  const std::vector<RowRef> waiting = disorder_->move_rows_to(side, batch, were.size());
  were.insert(were.end(), waiting.begin(), waiting.end());
  return were;
}

void BinaryOperator::save_waiting(ArchiveWriter& out) {
  const std::array<size_t, 2> before{join_->state(kLeft).live_rows(), join_->state(kRight).live_rows()};
  disorder_->save(out, before);
  ordered_->waiting().save(out);
}

void BinaryOperator::load_waiting(ArchiveReader& in) {
  disorder_->load(in);
  ordered_->waiting().load(in);
  if (keys_.direct()) return;
  disorder_->for_each_code([&](size_t, size_t, Code code) {
    if (!keys_.dictionary()->is_live(code)) throw DamagedArchive("a waiting row of a key that is not there");
    keys_.dictionary()->reference(code);
  });
}

}  // namespace streamjoin
