#include "streamjoin/engine/binary_operator.h"

#include <algorithm>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

/// Codes of a batch, given back however the call ends.
class HeldCodes {
 public:
  HeldCodes(KeySpace& keys, BinaryJoin& join, std::vector<Code>& codes)
      : keys_(keys), join_(join), codes_(codes) {}
  ~HeldCodes() {
    keys_.let_go(codes_, join_);
    codes_.clear();
  }

 private:
  KeySpace& keys_;
  BinaryJoin& join_;
  std::vector<Code>& codes_;
};

/// Where rows wait for their order, none that reaches the join can be late for it.
BinaryJoinOptions join_options(const OperatorOptions& options, bool direct) {
  BinaryJoinOptions join = options.join;
  join.codes_are_values = direct;
  if (options.disorder) join.late = LatePolicy::kDrop;
  return join;
}

}  // namespace

BinaryOperator::BinaryOperator(OperatorOptions options)
    : keys_(KeyEncoder(options.key_types, options.null_safe)),
      join_(std::make_unique<BinaryJoin>(join_options(options, keys_.direct()), keys_.dictionary())) {
  if (options.disorder) expect_disorder(std::move(options));
}

Output BinaryOperator::push(Side side, uint32_t batch, std::span<const Time> times,
                            std::span<const KeyColumn> keys, Predicate* predicate,
                            const PromisedKeys& promised) {
  check_promised(promised, times.size());
  Results results;
  expire_patterns();
  null_keys_.clear();
  const bool may_be_null =
      std::any_of(keys.begin(), keys.end(), [](const KeyColumn& key) { return key.valid != nullptr; });
  if (may_be_null) {
    null_keys_.resize(times.size());
    for (size_t row = 0; row < times.size(); ++row) null_keys_[row] = keys_.encoder().null_key(keys, row);
  }
  const uint8_t* null_keys = may_be_null ? null_keys_.data() : nullptr;
  if (disorder_) return push_disordered(side, batch, times, keys, null_keys);
  Time clock = join_->clock(side);
  if (promised.size() > 0 && !times.empty()) clock = std::max(clock, *std::ranges::max_element(times));
  const auto push = [&](std::span<const Code> codes, std::span<const Code> promised_codes) {
    order_promised(promised, promised_codes, clock);
    join_->push(side, {batch, times, codes, null_keys, nullptr, punctuations_}, predicate, results);
    join_->counters(side).punctuations_in += promised.size();
    return finish_call(std::move(results));
  };
  const auto integers = [](std::span<const KeyColumn> columns, size_t size) {
    return size == 0 ? std::span<const Code>() : std::span(static_cast<const Code*>(columns[0].values), size);
  };
  if (keys_.direct()) return push(integers(keys, times.size()), integers(promised.keys, promised.size()));
  HeldCodes held(keys_, *join_, codes_);
  HeldCodes held_promised(keys_, *join_, promised_codes_);
  keys_.codes_of(keys, times.size(), *join_, codes_);
  if (promised.size() > 0) keys_.codes_of(promised.keys, promised.size(), *join_, promised_codes_);
  return push(codes_, promised_codes_);
}

void BinaryOperator::check_promised(const PromisedKeys& promised, size_t rows) const {
  if (promised.size() == 0) return;
  if (disorder_) throw UsageError("streams out of order take punctuations in calls of their own");
  if (promised.times.size() != promised.size() || !std::ranges::is_sorted(promised.before) ||
      promised.before.front() < 0 || static_cast<size_t>(promised.before.back()) > rows)
    throw UsageError("punctuations must be in the order of their rows, each with its time");
}

void BinaryOperator::order_promised(const PromisedKeys& promised, std::span<const Code> codes,
                                    Time time_of_none) {
  punctuations_.clear();
  for (size_t i = 0; i < promised.size(); ++i) {
    if (keys_.direct() && promised.keys[0].is_null(i)) continue;  // null keys match nothing anyway
    const Time time = promised.times[i];
    punctuations_.push_back(
        {static_cast<size_t>(promised.before[i]), codes[i], time == kBeginning ? time_of_none : time});
  }
}

Output BinaryOperator::advance(Side side, Time time) {
  if (disorder_) return advance_disordered(side, time);
  Results results;
  expire_patterns();
  join_->advance(side, add_saturating(time, 1), results);
  return finish_call(std::move(results));
}

Output BinaryOperator::finish() {
  Results results;
  if (disorder_) results = finish_disordered();
  join_->finish(std::max(join_->clock(kLeft), join_->clock(kRight)), results);
  for (const Side side : {kLeft, kRight}) {
    keys_.patterns(side).clear();
    pending_[side].clear();
  }
  return finish_call(std::move(results));
}

Output BinaryOperator::punctuate(Side side, std::vector<KeyPattern> patterns, Time time) {
  if (disorder_) return punctuate_disordered(side, std::move(patterns), time);
  Results results;
  ++join_->counters(side).punctuations_in;
  apply(side, std::move(patterns), time == kBeginning ? join_->clock(side) : time, results);
  return finish_call(std::move(results));
}

void BinaryOperator::apply(Side side, std::vector<KeyPattern> patterns, Time time, Results& results) {
  expire_patterns();
  for (KeyPattern& pattern : patterns) pattern.normalise();
  if (apply_integers(side, patterns, time, results)) return;
  for (const KeyPattern& pattern : patterns) {
    if (!pattern.is_empty()) punctuate_one(side, pattern, time, results);
  }
}

// A list of values goes to the join at once: it fetches ahead what it knows of them.
bool BinaryOperator::apply_integers(Side side, std::span<const KeyPattern> patterns, Time time,
                                    Results& results) {
  if (!keys_.direct() || patterns.size() < 2 || !std::ranges::all_of(patterns, &KeyPattern::is_constant))
    return false;
  punctuations_.clear();
  for (const KeyPattern& pattern : patterns) {
    const std::string& value = pattern.attributes[0].low;
    if (!is_null(value)) punctuations_.push_back({0, decode_integer(value), time});
  }
  join_->push(side, {.number = 0, .times = {}, .keys = {}, .punctuations = punctuations_}, nullptr, results);
  return true;
}

void BinaryOperator::punctuate_one(Side side, const KeyPattern& pattern, Time time, Results& results) {
  if (pattern.is_any()) {
    join_->end(side, time, results);
    propagate_overlaps(other_side(side), pattern, time);
    keys_.patterns(other_side(side)).forget_inside(pattern);
  } else if (keys_.direct()) {
    punctuate_direct(side, pattern.attributes[0], time, results);
  } else if (join_->takes_punctuation(side, time)) {
    punctuate_keys(side, pattern, time, results);
  }
}

void BinaryOperator::punctuate_direct(Side side, const AttributePattern& pattern, Time time,
                                      Results& results) {
  if (pattern.kind == AttributePattern::Kind::kConstant) {
    if (is_null(pattern.low)) return;  // null keys match nothing anyway
    join_->punctuate(side, decode_integer(pattern.low), time, results);
    return;
  }
  const Code low = pattern.low_open ? std::numeric_limits<Code>::min() : decode_integer(pattern.low);
  const Code high = pattern.high_open ? std::numeric_limits<Code>::max() : decode_integer(pattern.high);
  join_->punctuate_range(side, low, high, time, results);
}

void BinaryOperator::punctuate_keys(Side side, const KeyPattern& pattern, Time time, Results& results) {
  if (pattern.is_constant()) {
    std::string key;
    for (const AttributePattern& attribute : pattern.attributes) key += attribute.low;
    std::vector<Code> code{keys_.hold(key, *join_)};
    HeldCodes held(keys_, *join_, code);
    join_->punctuate(side, code[0], time, results);
    // What it propagated must be read while the code is held.
    close_pending(results);
    for (const OutputPunctuation& punctuation : std::exchange(results.punctuations, {})) {
      KeyPattern propagated = punctuation.any ? any_pattern() : pattern;
      propagated_.push_back({punctuation.kind, std::move(propagated), punctuation.time, punctuation.until});
    }
    return;
  }
  const Side other = other_side(side);
  const JoinType type = join_->options().type;
  const Time expires = end_of(time, join_->options().sides[side].lifespan);
  const std::vector<Code> concerned = keys_.matching(pattern);
  for (const Code code : concerned) join_->punctuate_by_pattern(side, code, time, results);
  join_->settle(time, results);

  propagate_overlaps(other, pattern, time);
  if (join_->has_ended(other) || keys_.patterns(other).contains(pattern)) {
    // Both streams have promised it all; the other's promise is the wider one and stays.
    keys_.recover(side, concerned, *join_);
    return;
  }
  keys_.patterns(other).forget_inside(pattern);
  keys_.recover(other, concerned, *join_);
  keys_.patterns(side).remember(pattern, time, expires);
  if (!closing_ends_results(type, side)) return;
  PendingPattern pending{pattern, {}, time, join_->promised_until(time)};
  for (const Code code : concerned) {
    if (join_->promises(side).is_open(code)) pending.open.insert(code);
  }
  if (pending.open.empty()) {
    propagate(PropagationKind::kImmediate, pattern, time);
  } else {
    pending_[side].push_back(std::move(pending));
  }
}

// The other stream promises `pattern` now: where it overlaps with what `side` promised, the two have promised
// it together. Where one promise alone ends all results, that was propagated before.
void BinaryOperator::propagate_overlaps(Side side, const KeyPattern& pattern, Time time) {
  if (closing_ends_results(join_->options().type, side)) return;
  if (join_->has_ended(side)) {
    propagate(PropagationKind::kRegular, pattern, time);
    return;
  }
  keys_.patterns(side).for_each([&](const KeyPattern& promised, Time, Time) {
    const KeyPattern both = promised.intersection(pattern);
    if (!both.is_empty()) propagate(PropagationKind::kRegular, both, time);
  });
}

void BinaryOperator::propagate(PropagationKind kind, const KeyPattern& pattern, Time time) {
  propagated_.push_back({kind, pattern, time, join_->promised_until(time)});
  ++patterns_out_[static_cast<size_t>(kind)];
}

// Before each call: a clock has moved since a pattern was remembered.
void BinaryOperator::expire_patterns() {
  for (const Side side : {kLeft, kRight}) {
    if (join_->options().sides[side].lifespan == kEnd) continue;
    for (const KeyPattern& pattern : keys_.patterns(side).expire(join_->clock(side))) {
      std::erase_if(pending_[side],
                    [&](const PendingPattern& pending) { return pending.pattern == pattern; });
    }
  }
}

void BinaryOperator::close_pending(const Results& results) {
  for (auto& pending : pending_) {
    if (pending.empty()) continue;
    for (const OutputPunctuation& punctuation : results.punctuations) {
      if (punctuation.any) continue;
      std::erase_if(pending, [&](PendingPattern& pattern) {
        if (pattern.open.erase(punctuation.low) == 0 || !pattern.open.empty()) return false;
        propagate(PropagationKind::kEarly, pattern.pattern, punctuation.time);
        return true;
      });
    }
  }
}

Output BinaryOperator::finish_call(Results&& results) {
  close_pending(results);
  Output output{std::move(results.rows), std::move(results.late), std::move(results.violations),
                punctuation_columns(results)};
  if (!keys_.direct()) {
    for (const Side side : {kLeft, kRight}) keys_.let_go(join_->state(side).take_released_keys(), *join_);
  }
  return output;
}

OutputPunctuations BinaryOperator::punctuation_columns(const Results& results) {
  OutputPunctuations columns;
  const std::vector<AttributeType>& types = keys_.encoder().types();
  for (const AttributeType type : types)
    columns.attributes.push_back({AttributeColumn(type), AttributeColumn(type), AttributeColumn(type)});
  const auto add = [&](PropagationKind kind, Time time, Time until) {
    columns.kinds.push_back(static_cast<uint8_t>(kind));
    columns.times.push_back(time);
    columns.untils.push_back(until);
  };
  std::vector<std::string_view> values;
  for (const OutputPunctuation& punctuation : results.punctuations) {
    const bool constant = !punctuation.any && punctuation.low == punctuation.high;
    if (constant && !keys_.direct()) {
      keys_.split(punctuation.low, values);
      if (std::ranges::any_of(values, is_null)) continue;  // it would read as `*`
    }
    add(punctuation.kind, punctuation.time, punctuation.until);
    for (size_t i = 0; i < types.size(); ++i) {
      auto& [value, low, high] = columns.attributes[i];
      const bool range = !punctuation.any && !constant;
      if (!constant) {
        value.append_null();
      } else if (keys_.direct()) {
        value.append_integer(punctuation.low);
      } else {
        value.append_encoded(values[i]);
      }
      if (range && punctuation.low != std::numeric_limits<Code>::min()) {
        low.append_integer(punctuation.low);
      } else {
        low.append_null();
      }
      if (range && punctuation.high != std::numeric_limits<Code>::max()) {
        high.append_integer(punctuation.high);
      } else {
        high.append_null();
      }
    }
  }
  for (const PropagatedPattern& propagated : std::exchange(propagated_, {})) {
    if (std::ranges::any_of(propagated.pattern.attributes, [](const AttributePattern& attribute) {
          return attribute.kind == AttributePattern::Kind::kConstant && is_null(attribute.low);
        }))
      continue;
    add(propagated.kind, propagated.time, propagated.until);
    for (size_t i = 0; i < types.size(); ++i) columns.attributes[i].append(propagated.pattern.attributes[i]);
  }
  return columns;
}

KeyPattern BinaryOperator::any_pattern() const {
  return KeyPattern{std::vector<AttributePattern>(keys_.encoder().types().size())};
}

}  // namespace streamjoin
