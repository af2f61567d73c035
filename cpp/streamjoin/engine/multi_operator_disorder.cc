// MultiOperator where streams come out of order: rows and punctuations wait in DisorderInput, and join from
// there.

#include <algorithm>

#include "streamjoin/engine/multi_operator.h"
#include "streamjoin/engine/waiting_punctuations.h"

namespace streamjoin {

class MultiOperator::Ordered : public OrderedJoin {
 public:
  explicit Ordered(MultiOperator& owner) : owner_(owner), join_(*owner.join_) {}

  void join(size_t stream, const StreamBatch& rows) override { join_.push(stream, rows, results_); }
  bool insert_behind(size_t stream, const StreamBatch& row, Time clock) override {
    return join_.insert_behind(stream, row, 0, clock);
  }
  bool is_late(size_t stream, Time time, Time clock) const override {
    return join_.is_late(stream, time, clock);
  }
  void refuse(size_t stream, RowRef row, Duration late_by) override {
    results_.late.push_back({static_cast<Side>(stream), row, late_by});
  }
  void give_up(size_t, RowRef) override {}  // an inner join: nothing comes of it
  void punctuate(size_t stream, uint32_t punctuation) override {
    auto [patterns, time] = waiting_.take(punctuation);
    owner_.apply(stream, std::move(patterns), time, results_);
  }
  void raise_clocks(Time clock) override {
    for (size_t stream = 0; stream < join_.streams(); ++stream) join_.advance(stream, clock, results_);
  }
  void let_go(size_t stream, size_t position, std::span<const Code> codes) override {
    CodeSpace& space = *owner_.spaces_[join_.options().classes[stream][position]];
    if (space.encoder.direct()) return;
    for (const Code code : codes) space.dictionary.release(code);
  }
  std::span<RowRef> results() override { return results_.rows; }

  WaitingPunctuations& waiting() { return waiting_; }
  MultiResults take_results() { return std::exchange(results_, {}); }

 private:
  MultiOperator& owner_;
  MultiJoin& join_;
  MultiResults results_;
  WaitingPunctuations waiting_;
};

void MultiOperator::expect_disorder(DisorderOptions options, LatePolicy late) {
  ordered_ = std::make_shared<Ordered>(*this);
  DisorderInputOptions input{std::move(options), late, {}, join_->options().value_slots};
  for (const auto& classes : join_->options().classes) input.classes.push_back(classes.size());
  disorder_ = std::make_unique<DisorderInput>(std::move(input), *ordered_);
}

void MultiOperator::push_disordered(size_t stream, const StreamBatch& rows) {
  disorder_->resume();
  disorder_->check_late(stream, rows.times);
  const std::vector<size_t>& classes = join_->options().classes[stream];
  for (size_t position = 0; position < classes.size(); ++position) {
    CodeSpace& space = *spaces_[classes[position]];
    if (space.encoder.direct()) continue;
    for (const Code code : rows.keys[position]) space.dictionary.reference(code);
  }
  disorder_->push(stream, rows);
}

void MultiOperator::punctuate_disordered(size_t stream, std::vector<KeyPattern> patterns, Time time) {
  disorder_->resume();
  ++join_->counters(stream).punctuations_in;
  if (time == kBeginning) time = disorder_->stage().local_time(static_cast<uint32_t>(stream));
  disorder_->punctuate(stream, time, ordered_->waiting().keep(std::move(patterns), time));
}

void MultiOperator::save_waiting(ArchiveWriter& out) {
  std::vector<size_t> before;
  for (size_t stream = 0; stream < streams(); ++stream) before.push_back(join_->state(stream).live_rows());
  disorder_->save(out, before);
  ordered_->waiting().save(out);
}

void MultiOperator::load_waiting(ArchiveReader& in) {
  disorder_->load(in);
  ordered_->waiting().load(in);
}

void MultiOperator::look_at_clock(Time now) {
  if (!disorder_) return;
  disorder_->resume();
  disorder_->look_at_clock(now);
}

MultiResults MultiOperator::finish_disordered() {
  disorder_->resume();
  disorder_->finish();
  disorder_->results_taken();
  return ordered_->take_results();
}

MultiOutput MultiOperator::give_out() {
  disorder_->results_taken();
  return output_of(ordered_->take_results());
}

std::vector<uint32_t> MultiOperator::take_empty_batches(size_t stream) {
  std::vector<uint32_t> batches = join_->take_empty_batches(stream);
  if (!disorder_) return batches;
  const std::vector<uint32_t> drained = disorder_->take_drained_batches(stream);
  batches.insert(batches.end(), drained.begin(), drained.end());
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  std::erase_if(batches, [&](uint32_t batch) { return rows_of_batch(stream, batch) > 0; });
  return batches;
}

size_t MultiOperator::rows_of_batch(size_t stream, uint32_t batch) const {
  return join_->state(stream).rows_of_batch(batch) +
         (disorder_ ? disorder_->rows_of_batch(stream, batch) : 0);
}

size_t MultiOperator::live_rows(size_t stream) const {
  return join_->state(stream).live_rows() + (disorder_ ? disorder_->waiting_rows(stream) : 0);
}

std::vector<RowRef> MultiOperator::move_rows_to(size_t stream, uint32_t batch) {
  std::vector<RowRef> were = join_->move_rows_to(stream, batch);
  if (!disorder_) return were;
  const std::vector<RowRef> waiting = disorder_->move_rows_to(stream, batch, were.size());
  were.insert(were.end(), waiting.begin(), waiting.end());
  return were;
}

}  // namespace streamjoin
