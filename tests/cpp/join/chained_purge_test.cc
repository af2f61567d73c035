#include "streamjoin/join/chained_purge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>

namespace streamjoin {
namespace {

struct Bound {
  Time time;
  std::vector<Code> keys;
};
using Tuple = std::map<size_t, Bound>;  // by stream

// Random states, clocks and promises of a join on integer classes, and the rule by trying every order.
class Situation {
 public:
  explicit Situation(uint64_t seed) : random_(seed) {
    const size_t streams = 2 + random_() % 3;
    const size_t classes = 1 + random_() % 3;
    for (size_t stream = 0; stream < streams; ++stream) {
      auto& own = classes_.emplace_back();
      for (size_t number = 0; number < classes; ++number) {
        if (random_() % 3 != 0) own.push_back(number);
      }
      if (own.empty()) own.push_back(random_() % classes);
    }
    std::vector<std::vector<std::optional<Duration>>> uppers(streams,
                                                             std::vector<std::optional<Duration>>(streams));
    for (size_t i = 0; i < streams; ++i) {
      uppers[i][i] = 0;
      for (size_t j = 0; j < streams; ++j) {
        if (i != j && random_() % 4 == 0) uppers[i][j] = static_cast<Duration>(random_() % 6);
      }
    }
    for (size_t k = 0; k < streams; ++k) {
      for (size_t i = 0; i < streams; ++i) {
        for (size_t j = 0; j < streams; ++j) {
          if (!uppers[i][k] || !uppers[k][j]) continue;
          uppers[i][j] = std::min(uppers[i][j].value_or(kEnd), *uppers[i][k] + *uppers[k][j]);
        }
      }
    }
    matrix_ = std::make_unique<WindowMatrix>(
        std::vector<std::vector<std::vector<std::optional<Duration>>>>(1, uppers));
    for (size_t stream = 0; stream < streams; ++stream) {
      const size_t own = classes_[stream].size();
      const bool indexed = seed % 2 == 0;
      states_.push_back(std::make_unique<StreamState>(StreamStateOptions{
          .dictionaries = std::vector<KeyDictionary*>(own), .value_slots = 0, .indexed = indexed}));
      readable_.push_back(states_.back().get());
      clocks_.push_back(random_() % 8 == 0 ? kEnd : static_cast<Time>(random_() % 14));
      promises_.emplace_back(std::vector<const KeyDictionary*>(own), kEnd);
      for (size_t rows = random_() % 7; rows > 0; --rows) {
        const Bound row{static_cast<Time>(random_() % 12), random_keys(stream)};
        states_[stream]->insert(row.time, {0, 0}, row.keys, {});
      }
      for (size_t made = random_() % 5; made > 0; --made) {
        KeyPattern pattern{std::vector<AttributePattern>(own)};
        for (AttributePattern& attribute : pattern.attributes) {
          const Code low = static_cast<Code>(random_() % 3);
          if (random_() % 3 != 0) attribute = pattern_of({low, low + static_cast<Code>(random_() % 2)});
        }
        if (pattern.is_any()) continue;
        promises_[stream].remember(pattern, 0);
        made_[stream].push_back(pattern);
      }
    }
    chain_ = std::make_unique<ChainedPurge>(*matrix_, classes_, readable_, clocks_, promises_);
  }

  size_t streams() const { return classes_.size(); }
  StreamState& state(size_t stream) { return *states_[stream]; }
  ChainedPurge& chain() { return *chain_; }
  Bound stored(size_t stream, uint32_t node) const {
    Bound row{states_[stream]->time(node), {}};
    for (size_t position = 0; position < classes_[stream].size(); ++position)
      row.keys.push_back(states_[stream]->key(position, node));
    return row;
  }

  // The rule of the header, in every order of the streams.
  bool finished(const Tuple& tuple) const {
    if (tuple.size() == streams()) return true;
    for (size_t stream = 0; stream < streams(); ++stream) {
      if (tuple.contains(stream) || !closed(tuple, stream)) continue;
      bool all = true;
      for (const auto& entry : states_[stream]->all()) {
        Tuple longer = tuple;
        longer[stream] = stored(stream, entry.node);
        all &= !joins(longer) || finished(longer);
      }
      if (all) return true;
    }
    return false;
  }
  bool closed(const Tuple& tuple, size_t stream) const {
    if (clocks_[stream] == kEnd) return true;
    for (const auto& [other, row] : tuple) {
      const Duration reach = matrix_->hull(other, stream);
      if (reach != kEnd && clocks_[stream] > row.time + reach) return true;
    }
    const auto promises = made_.find(stream);
    if (promises == made_.end()) return false;
    return std::ranges::any_of(promises->second, [&](const KeyPattern& pattern) {
      for (size_t position = 0; position < classes_[stream].size(); ++position) {
        const AttributePattern& attribute = pattern.attributes[position];
        if (attribute.kind == AttributePattern::Kind::kAny) continue;
        const std::optional<Code> value = value_of(tuple, classes_[stream][position]);
        const CodeRange range = code_range(attribute);
        if (!value || *value < range.low || *value > range.high) return false;
      }
      return true;
    });
  }
  bool joins(const Tuple& tuple) const {
    for (const auto& [i, left] : tuple) {
      for (size_t position = 0; position < left.keys.size(); ++position) {
        if (value_of(tuple, classes_[i][position]) != left.keys[position]) return false;
      }
      for (const auto& [j, right] : tuple) {
        const Duration upper = matrix_->hull(i, j);
        if (i != j && upper != kEnd && right.time - left.time > upper) return false;
      }
    }
    return true;
  }

 private:
  std::vector<Code> random_keys(size_t stream) {
    std::vector<Code> keys;
    for (size_t i = 0; i < classes_[stream].size(); ++i) keys.push_back(static_cast<Code>(random_() % 3));
    return keys;
  }
  /// What the first row of the tuple with the class has there.
  std::optional<Code> value_of(const Tuple& tuple, size_t number) const {
    for (const auto& [stream, row] : tuple) {
      const auto found = std::ranges::find(classes_[stream], number);
      if (found != classes_[stream].end())
        return row.keys[static_cast<size_t>(found - classes_[stream].begin())];
    }
    return std::nullopt;
  }

  std::mt19937_64 random_;
  std::vector<std::vector<size_t>> classes_;
  std::unique_ptr<WindowMatrix> matrix_;
  std::vector<std::unique_ptr<StreamState>> states_;
  std::vector<const StreamState*> readable_;
  std::vector<Time> clocks_;
  std::vector<StreamPromises> promises_;
  std::map<size_t, std::vector<KeyPattern>> made_;
  std::unique_ptr<ChainedPurge> chain_;
};

TEST(ChainedPurge, SaysWhatTryingEveryOrderSaysAndItsWitnessIsOpen) {
  size_t may_go = 0;
  size_t must_stay = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Situation situation(seed);
    for (size_t stream = 0; stream < situation.streams(); ++stream) {
      for (const auto& entry : situation.state(stream).all()) {
        const Bound row = situation.stored(stream, entry.node);
        const bool expected = situation.finished({{stream, row}});
        ASSERT_EQ(situation.chain().may_go(stream, entry.node), expected) << "seed " << seed;
        ASSERT_EQ(situation.chain().may_go(stream, row.time, row.keys), expected) << "seed " << seed;
        (expected ? may_go : must_stay) += 1;
        if (expected) continue;
        Tuple witness{{stream, row}};
        for (const auto& member : situation.chain().witness()) {
          ASSERT_FALSE(witness.contains(member.stream)) << "seed " << seed;
          witness[member.stream] = situation.stored(member.stream, member.node);
        }
        ASSERT_TRUE(situation.joins(witness)) << "seed " << seed;
        ASSERT_FALSE(situation.finished(witness)) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(may_go, 500u);
  EXPECT_GT(must_stay, 500u);
}

}  // namespace
}  // namespace streamjoin
