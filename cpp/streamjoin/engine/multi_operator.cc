#include "streamjoin/engine/multi_operator.h"

#include <algorithm>

namespace streamjoin {
namespace {

std::vector<std::vector<size_t>> without_repetition(std::vector<std::vector<size_t>> attributes) {
  for (auto& of_stream : attributes) {
    std::vector<size_t> distinct;
    for (const size_t number : of_stream) {
      if (std::find(distinct.begin(), distinct.end(), number) == distinct.end()) distinct.push_back(number);
    }
    of_stream = std::move(distinct);
  }
  return attributes;
}

}  // namespace

class MultiOperator::HeldCodes {
 public:
  HeldCodes() = default;
  ~HeldCodes() {
    for (auto& [space, codes] : held_) {
      for (const Code code : codes) space->dictionary.release(code);
    }
  }
  HeldCodes(const HeldCodes&) = delete;
  HeldCodes& operator=(const HeldCodes&) = delete;

  std::span<const Code> codes_of(CodeSpace& space, std::span<const KeyColumn> columns, size_t rows) {
    if (space.encoder.direct()) return {static_cast<const Code*>(columns[0].values), rows};
    std::string arena;
    std::vector<uint64_t> ends;
    space.encoder.encode_all(columns, rows, arena, ends);
    auto& [held_by, codes] = held_.emplace_back(&space, std::vector<Code>());
    codes.reserve(rows);
    for (size_t row = 0; row < rows; ++row) {
      const uint64_t begin = row == 0 ? 0 : ends[row - 1];
      const std::string_view key(arena.data() + begin, ends[row] - begin);
      bool created;
      codes.push_back(space.dictionary.intern(key, hash_bytes(key), created));
    }
    return codes;
  }

 private:
  std::vector<std::pair<CodeSpace*, std::vector<Code>>> held_;
};

MultiOperator::MultiOperator(MultiOperatorOptions options) : attributes_(std::move(options.attributes)) {
  std::vector<KeyDictionary*> dictionaries;
  for (AttributeClass& each : options.classes) {
    if (each.types.empty()) throw UsageError("an attribute class needs a column");
    spaces_.push_back(std::make_unique<CodeSpace>(
        CodeSpace{KeyEncoder(std::move(each.types), std::move(each.null_safe)), KeyDictionary()}));
    dictionaries.push_back(spaces_.back()->encoder.direct() ? nullptr : &spaces_.back()->dictionary);
  }
  for (const auto& of_stream : attributes_) {
    for (const size_t number : of_stream) {
      if (number >= spaces_.size())
        throw UsageError("no attribute class has the number " + std::to_string(number));
    }
  }
  options.join.classes = without_repetition(attributes_);
  const LatePolicy late = options.join.late;
  // Where rows wait for their order, none that reaches the join can be late for it.
  if (options.disorder) options.join.late = LatePolicy::kDrop;
  join_ = std::make_unique<MultiJoin>(std::move(options.join), dictionaries);
  if (options.disorder) expect_disorder(std::move(*options.disorder), late);
}

MultiOutput MultiOperator::push(size_t stream, uint32_t batch, std::span<const Time> times,
                                std::span<const std::vector<KeyColumn>> keys,
                                std::vector<NumericColumn> values) {
  HeldCodes held;
  std::vector<uint8_t> unmatchable;
  StreamBatch rows{batch, times, {}, nullptr, std::move(values)};
  const std::vector<size_t>& attributes = attributes_[stream];
  const std::vector<size_t>& classes = join_->options().classes[stream];
  for (size_t i = 0; i < attributes.size(); ++i) {
    CodeSpace& space = *spaces_[attributes[i]];
    const std::span<const Code> codes = held.codes_of(space, keys[i], times.size());
    const bool may_be_null =
        std::ranges::any_of(keys[i], [](const KeyColumn& key) { return key.valid != nullptr; });
    const auto at = std::find(classes.begin(), classes.end(), attributes[i]) - classes.begin();
    const bool again = static_cast<size_t>(at) < rows.keys.size();
    if (!again) rows.keys.push_back(codes);
    if (!may_be_null && !again) continue;
    unmatchable.resize(times.size());
    for (size_t row = 0; row < times.size(); ++row) {
      const bool differs = again && rows.keys[static_cast<size_t>(at)][row] != codes[row];
      if (differs || (may_be_null && space.encoder.null_key(keys[i], row))) unmatchable[row] = 1;
    }
  }
  if (!unmatchable.empty()) rows.unmatchable = unmatchable.data();
  if (disorder_) {
    push_disordered(stream, rows);
    return give_out();
  }
  MultiResults results;
  join_->push(stream, rows, results);
  return output_of(std::move(results));
}

MultiOutput MultiOperator::end(size_t stream, Time time) {
  if (disorder_) {
    disorder_->resume();
    ++join_->counters(stream).punctuations_in;
    disorder_->punctuate(stream, time == kBeginning ? disorder_->stage().local_time(stream) : time, 0);
    return give_out();
  }
  MultiResults results;
  ++join_->counters(stream).punctuations_in;
  join_->end(stream, time == kBeginning ? join_->clock(stream) : time, results);
  return output_of(std::move(results));
}

MultiOutput MultiOperator::note_punctuation(size_t stream) {
  ++join_->counters(stream).punctuations_in;
  return output_of({});
}

MultiOutput MultiOperator::advance(size_t stream, Time time) {
  if (disorder_) {
    disorder_->resume();
    disorder_->advance(stream, time);
    return give_out();
  }
  MultiResults results;
  join_->advance(stream, add_saturating(time, 1), results);
  return output_of(std::move(results));
}

MultiOutput MultiOperator::finish() {
  MultiResults results;
  if (disorder_) results = finish_disordered();
  join_->finish(results);
  return output_of(std::move(results));
}

// The only output punctuation there is says `*` of every attribute.
MultiOutput MultiOperator::output_of(MultiResults&& results) const {
  OutputPunctuations punctuations;
  for (const auto& space : spaces_) {
    for (const AttributeType type : space->encoder.types()) {
      auto& attribute = punctuations.attributes.emplace_back(AttributeColumn(type), AttributeColumn(type),
                                                             AttributeColumn(type));
      for (size_t i = 0; i < results.punctuations.size(); ++i) {
        attribute.constant.append_null();
        attribute.low.append_null();
        attribute.high.append_null();
      }
    }
  }
  for (const OutputPunctuation& punctuation : results.punctuations) {
    punctuations.kinds.push_back(static_cast<uint8_t>(punctuation.kind));
    punctuations.times.push_back(punctuation.time);
    punctuations.untils.push_back(punctuation.until);
  }
  return {streams(), std::move(results.rows), std::move(results.late), std::move(results.violations),
          std::move(punctuations)};
}

void MultiOperator::free_dead_rows() {
  for (size_t stream = 0; stream < streams(); ++stream) join_->state(stream).sweep_all();
}

uint64_t MultiOperator::dictionary_entries() const {
  uint64_t entries = 0;
  for (const auto& space : spaces_) entries += space->dictionary.size();
  return entries;
}

uint64_t MultiOperator::memory_bytes() const {
  uint64_t bytes = join_->memory_bytes() + (disorder_ ? disorder_->memory_bytes() : 0);
  for (const auto& space : spaces_) bytes += space->dictionary.memory_bytes();
  return bytes;
}

std::string MultiOperator::validate() const {
  for (const auto& space : spaces_) {
    if (const std::string broken = space->dictionary.validate(); !broken.empty()) return broken;
  }
  if (disorder_) {
    if (const std::string broken = disorder_->validate(); !broken.empty()) return broken;
  }
  return join_->validate();
}

std::string MultiOperator::save() {
  free_dead_rows();
  ArchiveWriter out;
  for (const auto& space : spaces_) space->dictionary.save(out);
  join_->save(out);
  if (disorder_) {
    std::vector<size_t> before;
    for (size_t stream = 0; stream < streams(); ++stream) before.push_back(join_->state(stream).live_rows());
    disorder_->save(out, before);
  }
  return out.take();
}

void MultiOperator::load(std::string_view bytes) {
  ArchiveReader in(bytes);
  for (const auto& space : spaces_) space->dictionary.load(in);
  join_->load(in);
  if (disorder_) disorder_->load(in);
  if (!in.at_end()) throw DamagedArchive("snapshot goes on after its end");
}

}  // namespace streamjoin
