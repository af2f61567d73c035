#include "streamjoin/engine/disorder_input.h"

#include <algorithm>
#include <utility>

namespace streamjoin {

DisorderInput::DisorderInput(DisorderInputOptions options, OrderedJoin& join)
    : options_(std::move(options)),
      join_(join),
      stage_(options_.stage),
      held_(options_.stage.streams),
      runs_(options_.stage.streams) {
  for (size_t stream = 0; stream < held_.size(); ++stream) {
    for (Columns* columns : {&held_[stream].columns, &runs_[stream].columns}) {
      columns->keys.resize(options_.classes[stream]);
      columns->values.resize(options_.value_slots[stream]);
    }
  }
}

void DisorderInput::resume() {
  took_batch_ = false;
  if (stage_.is_unfinished()) stage_.resume(*this);
}

void DisorderInput::push(size_t stream, const StreamBatch& rows) {
  Held& held = held_[stream];
  const size_t count = rows.times.size();
  if (count == 0) return;
  slots_.clear();
  const size_t reused = std::min(count, held.free.size());
  slots_.assign(held.free.rbegin(), held.free.rbegin() + static_cast<std::ptrdiff_t>(reused));
  held.free.resize(held.free.size() - reused);
  size_t slots = held.columns.refs.size();
  for (size_t i = reused; i < count; ++i) slots_.push_back(static_cast<uint32_t>(slots++));

  Columns& columns = held.columns;
  columns.refs.resize(slots);
  columns.unmatchable.resize(slots);
  for (size_t i = 0; i < count; ++i) columns.refs[slots_[i]] = rows.ref(i);
  for (size_t i = 0; i < count; ++i)
    columns.unmatchable[slots_[i]] = rows.unmatchable != nullptr ? rows.unmatchable[i] : 0;
  for (size_t k = 0; k < columns.keys.size(); ++k) {
    columns.keys[k].resize(slots);
    for (size_t i = 0; i < count; ++i) columns.keys[k][slots_[i]] = rows.keys[k][i];
  }
  for (size_t k = 0; k < columns.values.size(); ++k) {
    columns.values[k].resize(slots);
    for (size_t i = 0; i < count; ++i) columns.values[k][slots_[i]] = rows.values[k].at(i);
  }
  took_batch_ = true;
  held.rows += count;
  if (rows.number >= held.rows_of_batch.size()) {
    held.rows_of_batch.resize(rows.number + size_t{1});
    held.releases.resize(rows.number + size_t{1});
  }
  held.rows_of_batch[rows.number] += static_cast<uint32_t>(count);
  if (held.releases[rows.number].capacity() == 0) held.releases[rows.number] = std::exchange(held.spare, {});
  held.releases[rows.number].assign(count, 0);
  stage_.push(static_cast<uint32_t>(stream), rows.times, slots_, *this);
}

// Finds rows of a call that would be late, by playing it through on a copy of the stage.
class DisorderInput::LateFinder : public JoinSink {
 public:
  static constexpr uint32_t kNew = uint32_t{1} << 31;  // beyond every slot

  LateFinder(const OrderedJoin& join, Time clock) : join_(join), clock_(clock) {}
  void join(std::span<const ReleasedRow> rows, std::span<uint64_t>) override {
    for (const ReleasedRow& released : rows) {
      if (released.row.is_punctuation()) continue;
      if (!released.behind) {
        clock_ = std::max(clock_, released.row.time);
      } else if (released.row.index >= kNew && join_.is_late(released.stream, released.row.time, clock_)) {
        throw RefusedBatch{RefusedBatch::Why::kLate, released.row.index - kNew, clock_};
      }
    }
  }

 private:
  const OrderedJoin& join_;
  Time clock_;
};

void DisorderInput::check_late(size_t stream, std::span<const Time> times) const {
  if (options_.late != LatePolicy::kError) return;
  std::vector<uint32_t> indexes;
  for (size_t i = 0; i < times.size(); ++i) indexes.push_back(LateFinder::kNew + static_cast<uint32_t>(i));
  LateFinder finder(join_, stage_.clock());
  stage_.rehearsal().push(static_cast<uint32_t>(stream), times, indexes, finder);
}

void DisorderInput::punctuate(size_t stream, Time time, uint32_t punctuation) {
  stage_.punctuate(static_cast<uint32_t>(stream), time, punctuation, *this);
}

void DisorderInput::advance(size_t stream, Time time) {
  stage_.advance(static_cast<uint32_t>(stream), time, *this);
  if (stage_.clock() > clock_) join_.raise_clocks(clock_ = stage_.clock());
}

void DisorderInput::look_at_clock(Time now) {
  stage_.look_at_clock(now, *this);
  if (stage_.clock() > clock_) join_.raise_clocks(clock_ = stage_.clock());
}

void DisorderInput::finish() {
  stage_.finish(*this);
}

void DisorderInput::join(std::span<const ReleasedRow> rows, std::span<uint64_t> results) {
  for (; at_ < rows.size(); ++at_) {
    const ReleasedRow& released = rows[at_];
    if (places_.size() >= kBlock) flush(results);
    if (!released.behind && !released.row.is_punctuation()) {
      add(released, at_);
      continue;
    }
    flush(results);
    if (released.row.is_punctuation()) {
      join_.punctuate(released.stream, released.row.index);
    } else {
      join_behind(released);
    }
    ordered_ = join_.results().size() / runs_.size();
  }
  flush(results);
  at_ = 0;
}

void DisorderInput::add(const ReleasedRow& released, size_t place) {
  Run& run = runs_[released.stream];
  run.times.push_back(released.row.time);
  run.slots.push_back(released.row.index);
  places_.push_back(static_cast<uint32_t>(place));
  run.order.push_back(static_cast<uint32_t>(places_.size()));
  clock_ = std::max(clock_, released.row.time);
}

/// What the rows of a run hold leaves their slots, column by column.
void DisorderInput::take_from_slots(size_t stream) {
  Held& held = held_[stream];
  Run& run = runs_[stream];
  const size_t count = run.slots.size();
  if (run.columns.refs.size() == count) return;  // done before the join threw
  run.columns.refs.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const RowRef ref = held.columns.refs[run.slots[i]];
    run.columns.refs[i] = ref;
    held.releases[ref.batch][ref.row] = before_ + run.order[i];
  }
  uint8_t any_unmatchable = 0;
  run.columns.unmatchable.resize(count);
  for (size_t i = 0; i < count; ++i)
    any_unmatchable |= run.columns.unmatchable[i] = held.columns.unmatchable[run.slots[i]];
  run.any_unmatchable = any_unmatchable != 0;
  for (size_t k = 0; k < run.columns.keys.size(); ++k) {
    run.columns.keys[k].resize(count);
    for (size_t i = 0; i < count; ++i) run.columns.keys[k][i] = held.columns.keys[k][run.slots[i]];
  }
  for (size_t k = 0; k < run.columns.values.size(); ++k) {
    run.columns.values[k].resize(count);
    for (size_t i = 0; i < count; ++i) run.columns.values[k][i] = held.columns.values[k][run.slots[i]];
  }
  held.free.insert(held.free.end(), run.slots.begin(), run.slots.end());
}

void DisorderInput::join_behind(const ReleasedRow& released) {
  Run& run = runs_[released.stream];
  run.times.push_back(released.row.time);
  run.slots.push_back(released.row.index);
  run.order.push_back(0);
  take_from_slots(released.stream);
  if (!join_.insert_behind(released.stream, batch_of(run), clock_)) {
    if (options_.late == LatePolicy::kInsert) {
      join_.give_up(released.stream, run.columns.refs[0]);
    } else {
      join_.refuse(released.stream, run.columns.refs[0], subtract_saturating(clock_, released.row.time));
    }
  }
  clear(released.stream);
}

StreamBatch DisorderInput::batch_of(const Run& run) {
  StreamBatch batch{0, run.times, {}, nullptr, {}, run.columns.refs.data()};
  if (run.any_unmatchable) batch.unmatchable = run.columns.unmatchable.data();
  for (const auto& keys : run.columns.keys) batch.keys.push_back(keys);
  for (const auto& values : run.columns.values)
    batch.values.push_back(
        {.integers = nullptr, .reals = nullptr, .valid = nullptr, .values = values.data()});
  return batch;
}

void DisorderInput::flush(std::span<uint64_t> results) {
  if (places_.empty()) return;
  for (size_t stream = 0; stream < runs_.size(); ++stream) take_from_slots(stream);
  for (; flushing_ < runs_.size(); ++flushing_) {
    if (!runs_[flushing_].times.empty()) join_.join(flushing_, batch_of(runs_[flushing_]));
  }
  flushing_ = 0;
  order_results(results);
  join_.raise_clocks(clock_);
  ordered_ = join_.results().size() / runs_.size();
  before_ += places_.size();
  places_.clear();
  for (size_t stream = 0; stream < runs_.size(); ++stream) clear(stream);
}

/// The rows of a run have joined.
void DisorderInput::clear(size_t stream) {
  Held& held = held_[stream];
  Run& run = runs_[stream];
  held.rows -= run.times.size();
  for (const RowRef ref : run.columns.refs) {
    if (--held.rows_of_batch[ref.batch] > 0) continue;
    held.drained.push_back(ref.batch);
    held.spare = std::exchange(held.releases[ref.batch], {});
  }
  for (size_t k = 0; k < run.columns.keys.size(); ++k) {
    join_.let_go(stream, k, run.columns.keys[k]);
    run.columns.keys[k].clear();
  }
  for (auto& values : run.columns.values) values.clear();
  run.columns.refs.clear();
  run.columns.unmatchable.clear();
  run.any_unmatchable = false;
  run.times.clear();
  run.slots.clear();
  run.order.clear();
}

/// Where the number of a row's release is; null if it was released before this group.
const uint64_t* DisorderInput::release_at(size_t stream, RowRef row) const {
  const auto& releases = held_[stream].releases;
  if (row.batch >= releases.size() || row.row >= releases[row.batch].size()) return nullptr;
  return releases[row.batch].data() + row.row;
}

// A result belongs to the last released of its rows. A counting sort by release: the results of one row stay
// as the join found them.
void DisorderInput::order_results(std::span<uint64_t> results) {
  const size_t streams = runs_.size();
  const std::span<RowRef> found = join_.results().subspan(ordered_ * streams);
  const size_t count = found.size() / streams;
  if (count == 0) return;
  const auto used =
      std::count_if(runs_.begin(), runs_.end(), [](const Run& run) { return !run.times.empty(); });
  if (used == 1 && results.empty()) return;  // in the order of its rows already
  completed_by_.resize(count);
  starts_.assign(places_.size() + 1, 0);
  constexpr size_t kAhead = 16;  // results: partners lie anywhere in their batch
  for (size_t i = 0; i < count; ++i) {
    uint64_t last = before_ + 1;
    for (size_t stream = 0; stream < streams; ++stream) {
      if (i + kAhead < count) __builtin_prefetch(release_at(stream, found[(i + kAhead) * streams + stream]));
      const uint64_t* release = release_at(stream, found[i * streams + stream]);
      if (release != nullptr) last = std::max(last, *release);
    }
    completed_by_[i] = static_cast<uint32_t>(last - before_ - 1);
    ++starts_[completed_by_[i] + 1];
  }
  if (!results.empty()) {
    for (size_t i = 0; i < places_.size(); ++i) results[places_[i]] = starts_[i + 1];
  }
  if (used == 1) return;
  for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  sorted_.resize(found.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t to = starts_[completed_by_[i]]++;
    std::copy_n(found.begin() + static_cast<std::ptrdiff_t>(i * streams), streams,
                sorted_.begin() + static_cast<std::ptrdiff_t>(to * streams));
  }
  std::copy(sorted_.begin(), sorted_.end(), found.begin());
}

size_t DisorderInput::rows_of_batch(size_t stream, uint32_t batch) const {
  const auto& rows = held_[stream].rows_of_batch;
  return batch < rows.size() ? rows[batch] : 0;
}

std::vector<uint32_t> DisorderInput::take_drained_batches(size_t stream) {
  return std::exchange(held_[stream].drained, {});
}

std::vector<RowRef> DisorderInput::move_rows_to(size_t stream, uint32_t batch, size_t before) {
  Held& held = held_[stream];
  std::vector<RowRef> were;
  for (auto& releases : held.releases) releases = {};
  std::fill(held.rows_of_batch.begin(), held.rows_of_batch.end(), 0);
  held.drained.clear();
  stage_.for_each_waiting(static_cast<uint32_t>(stream), [&](const WaitingRow& row) {
    if (row.is_punctuation()) return;
    RowRef& ref = held.columns.refs[row.index];
    were.push_back(ref);
    ref = {batch, static_cast<uint32_t>(before + were.size() - 1)};
  });
  if (were.empty()) return were;
  if (batch >= held.rows_of_batch.size()) {
    held.rows_of_batch.resize(batch + size_t{1});
    held.releases.resize(batch + size_t{1});
  }
  held.rows_of_batch[batch] = static_cast<uint32_t>(were.size());
  held.releases[batch].assign(before + were.size(), 0);
  return were;
}

size_t DisorderInput::memory_bytes() const {
  size_t bytes = stage_.memory_bytes();
  for (size_t stream = 0; stream < held_.size(); ++stream) {
    for (const Columns* columns : {&held_[stream].columns, &runs_[stream].columns}) {
      bytes += columns->refs.capacity() * sizeof(RowRef) + columns->unmatchable.capacity();
      for (const auto& keys : columns->keys) bytes += keys.capacity() * sizeof(Code);
      for (const auto& values : columns->values) bytes += values.capacity() * sizeof(NumericValue);
    }
    for (const auto& releases : held_[stream].releases) bytes += releases.capacity() * sizeof(uint64_t);
    bytes += held_[stream].spare.capacity() * sizeof(uint64_t);
  }
  return bytes;
}

std::string DisorderInput::validate() const {
  for (const Held& held : held_) {
    if (held.rows + held.free.size() != held.columns.refs.size())
      return "disorder input: a slot is neither free nor held";
    size_t rows = 0;
    for (const uint32_t of_batch : held.rows_of_batch) rows += of_batch;
    if (rows != held.rows) return "disorder input: the rows of the batches are not those that wait";
  }
  return stage_.is_unfinished() ? std::string() : stage_.validate();
}

void DisorderInput::save(ArchiveWriter& out, std::span<const size_t> before) {
  if (stage_.is_unfinished())
    throw UsageError("a predicate has thrown in the last call; a snapshot needs that call to be finished");
  stage_.save(out);
  out.value(clock_);
  for (size_t stream = 0; stream < held_.size(); ++stream) {
    Held& held = held_[stream];
    out.value<uint64_t>(held.columns.refs.size());
    out.value<uint64_t>(held.rows);
    auto row = static_cast<uint32_t>(before[stream]);
    stage_.for_each_waiting(static_cast<uint32_t>(stream), [&](const WaitingRow& waiting) {
      if (waiting.is_punctuation()) return;
      const uint32_t slot = waiting.index;
      out.value(slot);
      out.value(row++);
      out.value(held.columns.unmatchable[slot]);
      for (const auto& keys : held.columns.keys) out.value(keys[slot]);
      for (const auto& values : held.columns.values) {
        out.value(values[slot].bits());
        out.value(values[slot].kind());
      }
    });
  }
}

void DisorderInput::load(ArchiveReader& in) {
  stage_.load(in);
  clock_ = in.value<Time>();
  for (Held& held : held_) {
    const uint64_t slots = in.value<uint64_t>();
    const uint64_t rows = in.value<uint64_t>();
    if (slots > LateFinder::kNew || rows > slots) throw DamagedArchive("snapshot: more rows wait than slots");
    Columns& columns = held.columns;
    columns.refs.assign(slots, kNoRow);
    columns.unmatchable.resize(slots);
    for (auto& keys : columns.keys) keys.resize(slots);
    for (auto& values : columns.values) values.assign(slots, NumericValue::null());
    held.rows = rows;
    uint32_t end = 0;
    for (uint64_t i = 0; i < rows; ++i) {
      const uint32_t slot = in.value<uint32_t>();
      if (slot >= slots) throw DamagedArchive("snapshot: a waiting row has no slot");
      columns.refs[slot] = {0, in.value<uint32_t>()};
      end = std::max(end, columns.refs[slot].row + 1);
      columns.unmatchable[slot] = in.value<uint8_t>();
      for (auto& keys : columns.keys) keys[slot] = in.value<Code>();
      for (auto& values : columns.values) {
        const uint64_t bits = in.value<uint64_t>();
        values[slot] = NumericValue::of_bits(bits, in.value<uint8_t>());
      }
    }
    for (uint64_t slot = slots; slot-- > 0;) {
      if (columns.refs[slot] == kNoRow) held.free.push_back(static_cast<uint32_t>(slot));
    }
    held.rows_of_batch.assign(1, static_cast<uint32_t>(rows));
    held.releases.resize(1);
    held.releases[0].assign(end, 0);
  }
}

}  // namespace streamjoin
