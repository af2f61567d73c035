#include "streamjoin/engine/multi_operator.h"

#include <algorithm>
#include <unordered_map>

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
    if (options.join.punctuations.used && each.types.size() > 1)
      throw UsageError("with punctuations an attribute class has one column");
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
  if (options.disorder) {
    options.join.late = LatePolicy::kDrop;
    options.join.rows_come_behind = true;
  }
  join_ = std::make_unique<MultiJoin>(std::move(options.join), dictionaries);
  if (options.disorder) expect_disorder(std::move(*options.disorder), late);
}

struct MultiOperator::EncodedBatch {
  StreamBatch rows;
  HeldCodes held;
  std::vector<uint8_t> unmatchable;
};

void MultiOperator::encode(size_t stream, std::span<const std::vector<KeyColumn>> keys, EncodedBatch& batch) {
  auto& [rows, held, unmatchable] = batch;
  const size_t count = rows.times.size();
  const std::vector<size_t>& attributes = attributes_[stream];
  const std::vector<size_t>& classes = join_->options().classes[stream];
  for (size_t i = 0; i < attributes.size(); ++i) {
    CodeSpace& space = *spaces_[attributes[i]];
    const std::span<const Code> codes = held.codes_of(space, keys[i], count);
    const bool may_be_null =
        std::ranges::any_of(keys[i], [](const KeyColumn& key) { return key.valid != nullptr; });
    const auto at = std::find(classes.begin(), classes.end(), attributes[i]) - classes.begin();
    const bool again = static_cast<size_t>(at) < rows.keys.size();
    if (!again) rows.keys.push_back(codes);
    if (!may_be_null && !again) continue;
    unmatchable.resize(count);
    for (size_t row = 0; row < count; ++row) {
      const bool differs = again && rows.keys[static_cast<size_t>(at)][row] != codes[row];
      if (differs || (may_be_null && space.encoder.null_key(keys[i], row))) unmatchable[row] = 1;
    }
  }
  if (!unmatchable.empty()) rows.unmatchable = unmatchable.data();
}

MultiOutput MultiOperator::push(size_t stream, uint32_t batch, std::span<const Time> times,
                                std::span<const std::vector<KeyColumn>> keys,
                                std::vector<NumericColumn> values) {
  EncodedBatch encoded{{batch, times, {}, nullptr, std::move(values)}, {}, {}};
  encode(stream, keys, encoded);
  if (disorder_) {
    push_disordered(stream, encoded.rows);
    return give_out();
  }
  MultiResults results;
  join_->push(stream, encoded.rows, results);
  return output_of(std::move(results));
}

MultiOutput MultiOperator::rehearse(size_t stream, uint32_t batch, std::span<const Time> times,
                                    std::span<const std::vector<KeyColumn>> keys,
                                    std::vector<NumericColumn> values) {
  if (disorder_) throw UsageError("rows that wait for their order cannot be rehearsed");
  EncodedBatch encoded{{batch, times, {}, nullptr, std::move(values)}, {}, {}};
  encode(stream, keys, encoded);
  MultiResults results;
  results.rows = join_->rehearse(stream, encoded.rows);
  return output_of(std::move(results));
}

MultiOutput MultiOperator::punctuate(size_t stream, std::vector<KeyPattern> patterns, Time time) {
  if (disorder_) {
    punctuate_disordered(stream, std::move(patterns), time);
    return give_out();
  }
  MultiResults results;
  ++join_->counters(stream).punctuations_in;
  apply(stream, std::move(patterns), time == kBeginning ? join_->clock(stream) : time, results);
  return output_of(std::move(results));
}

void MultiOperator::apply(size_t stream, std::vector<KeyPattern> patterns, Time time, MultiResults& results) {
  for (KeyPattern& pattern : patterns) {
    pattern.normalise();
    if (pattern.is_any()) {
      join_->end(stream, time, results);
    } else if (!pattern.is_empty()) {
      punctuate_one(stream, pattern, time, results);
    }
  }
}

// From attributes as they are pushed to classes without repetition: where two attributes are of one class, a
// row has the same value in both, or matches nothing.
void MultiOperator::punctuate_one(size_t stream, const KeyPattern& pattern, Time time,
                                  MultiResults& results) {
  const std::vector<size_t>& classes = join_->options().classes[stream];
  KeyPattern by_class{std::vector<AttributePattern>(classes.size())};
  for (size_t i = 0; i < attributes_[stream].size(); ++i) {
    const auto at = std::find(classes.begin(), classes.end(), attributes_[stream][i]) - classes.begin();
    AttributePattern& attribute = by_class.attributes[static_cast<size_t>(at)];
    attribute = attribute.intersection(pattern.attributes[i]);
    const bool null = attribute.kind == AttributePattern::Kind::kConstant && is_null(attribute.low);
    if (null && spaces_[attributes_[stream][i]]->encoder.direct()) return;  // null matches nothing anyway
  }
  by_class.normalise();
  if (!by_class.is_empty()) join_->punctuate(stream, by_class, time, results);
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

// What is closed first, then what says `*` of every class.
MultiOutput MultiOperator::output_of(MultiResults&& results) const {
  OutputPunctuations punctuations;
  const AttributePattern any;
  for (size_t number = 0; number < spaces_.size(); ++number) {
    for (const AttributeType type : spaces_[number]->encoder.types()) {
      auto& attribute = punctuations.attributes.emplace_back(AttributeColumn(type), AttributeColumn(type),
                                                             AttributeColumn(type));
      for (const ClosedPattern& closed : results.closed) {
        const auto named =
            std::ranges::find(closed.classes, number, [](const auto& each) { return each.first; });
        attribute.append(named == closed.classes.end() ? any : named->second);
      }
      for (size_t i = 0; i < results.punctuations.size(); ++i) attribute.append(any);
    }
  }
  const auto add = [&](PropagationKind kind, Time time, Time until) {
    punctuations.kinds.push_back(static_cast<uint8_t>(kind));
    punctuations.times.push_back(time);
    punctuations.untils.push_back(until);
  };
  for (const ClosedPattern& closed : results.closed) add(closed.kind, closed.time, closed.until);
  for (const OutputPunctuation& punctuation : results.punctuations)
    add(punctuation.kind, punctuation.time, punctuation.until);
  return {streams(), std::move(results.rows), std::move(results.late), std::move(results.violations),
          std::move(punctuations)};
}

void MultiOperator::free_dead_rows() {
  join_->free_dead_rows();
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
  if (disorder_) save_waiting(out);
  return out.take();
}

// A key that has fewer references than rows would be forgotten while rows still speak of it.
void MultiOperator::check_loaded_references() const {
  for (size_t number = 0; number < spaces_.size(); ++number) {
    if (spaces_[number]->encoder.direct()) continue;
    std::unordered_map<Code, uint64_t> rows;
    for (size_t stream = 0; stream < streams(); ++stream) {
      const std::vector<size_t>& classes = join_->options().classes[stream];
      for (size_t position = 0; position < classes.size(); ++position) {
        if (classes[position] != number) continue;
        for (const auto& entry : join_->state(stream).all())
          ++rows[join_->state(stream).key(position, entry.node)];
      }
    }
    const KeyDictionary& dictionary = spaces_[number]->dictionary;
    for (const auto& [code, count] : rows) {
      if (dictionary.references(code) < count)
        throw DamagedArchive("snapshot counts fewer references to a key than there are rows of it");
    }
  }
}

void MultiOperator::load(std::string_view bytes) {
  ArchiveReader in(bytes);
  for (const auto& space : spaces_) space->dictionary.load(in);
  join_->load(in);
  check_loaded_references();
  if (disorder_) load_waiting(in);
  if (!in.at_end()) throw DamagedArchive("snapshot goes on after its end");
}

}  // namespace streamjoin
