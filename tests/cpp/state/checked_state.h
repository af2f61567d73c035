// CheckedState: a WindowState beside a twin that is too simple to be wrong, a list of rows in the order of
// their arrival. Each operation runs on both, compares what they did, and validates the invariants.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "streamjoin/state/window_state.h"

namespace streamjoin {

class CheckedState {
 public:
  struct Row {
    Time time;
    Code key;
    RowRef ref;
    bool late;
    bool matched;
  };

  Time newest() const { return newest_; }
  size_t size() const { return rows_.size(); }
  const WindowState& fast() const { return *fast_; }

  void insert(Time time, Code key, RowRef ref, bool matched) {
    newest_ = time;
    add({time, key, ref, false, matched}, fast_->insert(time, key, ref, fast_->lists().find(key)));
  }
  void insert_late(Time time, Code key, RowRef ref, bool matched) {
    add({time, key, ref, true, matched}, fast_->insert_late(time, key, ref));
  }

  /// Walks over the rows of a key; `decide(row)` says what to do with each.
  template <typename Decide>
  void walk(Code key, Decide decide) {
    ValueList* node = fast_->lists().find(key);
    std::vector<Row> expected = of_key(key);
    if (node == nullptr) {
      ASSERT_TRUE(expected.empty());
      return;
    }
    size_t seen = 0;
    bool stopped = false;
    std::vector<RowRef> gone;
    fast_->walk(*node, [&](uint32_t index, TNode& row) {
      EXPECT_FALSE(stopped) << "a walk goes on after it was stopped";
      EXPECT_TRUE(seen < expected.size() && same(row, expected[seen])) << "a walk visits the wrong row";
      EXPECT_EQ(&fast_->node(index), &row);
      ++seen;
      const Visit visit = decide(row.row());
      stopped = visit == Visit::kStop;
      if (visit == Visit::kTakeOut) gone.push_back(row.row());
      return visit;
    });
    ASSERT_TRUE(stopped || seen == expected.size()) << "a walk misses a row";
    for (const RowRef ref : gone) forget(ref);
    fast_->remove_if_idle(fast_->lists().find(key), key);
    validate();
  }

  void look(Code key) {
    std::vector<Row> seen;
    if (const ValueList* node = fast().lists().find(key); node != nullptr) {
      fast().look(*node, [&](uint32_t, const TNode& row) {
        seen.push_back(row_of(row));
        return Visit::kKeep;
      });
    }
    expect_same(seen, of_key(key));
  }

  void purge(Code key) {
    const std::vector<Row> expected = of_key(key);
    if (ValueList* node = fast_->lists().find(key); node != nullptr) {
      std::vector<Row> left;
      EXPECT_EQ(fast_->purge(*node, [&](TNode& row) { left.push_back(row_of(row)); }), expected.size());
      expect_same(left, expected);
      EXPECT_FALSE(fast_->has_live_rows(*node));
      EXPECT_TRUE(fast_->remove_if_idle(node, key));
    }
    EXPECT_EQ(fast_->lists().find(key), nullptr);
    for (const Row& row : expected) forget(row.ref);
    validate();
  }

  void invalidate_before(Time limit) {
    std::vector<Row> expected;
    for (const Row& row : rows_) {
      if (row.time < limit) expected.push_back(row);
    }
    std::vector<Row> left;
    fast_->invalidate_before(limit, [&](TNode& row) { left.push_back(row_of(row)); });
    for (const bool late : {false, true}) {
      const auto is_other = [&](const Row& row) { return row.late != late; };
      std::vector<Row> some = left, others = expected;
      std::erase_if(some, is_other);
      std::erase_if(others, is_other);
      ASSERT_TRUE(std::ranges::is_sorted(some, {}, &Row::time)) << "rows do not leave oldest first";
      // Among late rows of one time any order will do.
      const auto by_ref = [](const Row& a, const Row& b) {
        return std::tuple(a.time, a.ref.batch, a.ref.row) < std::tuple(b.time, b.ref.batch, b.ref.row);
      };
      std::ranges::sort(some, by_ref);
      std::ranges::sort(others, by_ref);
      expect_same(some, others);
    }
    for (const Row& row : expected) forget(row.ref);
    validate();
    EXPECT_GE(fast_->oldest(), limit);
  }

  void sweep() {
    fast_->sweep();
    if (rows_.empty()) {
      ASSERT_EQ(fast_->dead_rows(), 0u);
      ASSERT_EQ(fast_->lists().size(), 0u);
    }
    ASSERT_LE(fast_->dead_rows(), rows_.size() / 4 + WindowState::kSlackRows);
    validate();
  }

  void sweep_all() {
    fast_->sweep_all();
    ASSERT_EQ(fast_->dead_rows(), 0u);
    std::set<Code> keys;
    for (const Row& row : rows_) keys.insert(row.key);
    ASSERT_EQ(fast_->lists().size(), keys.size());
    validate();
  }

  void pack() {
    fast_->pack();
    expect_same_rows();
    validate();
  }

  /// Moves all rows to a new batch, then goes on from a snapshot if asked to: the rows are those of the
  /// batch, in its order.
  void move_rows_to(uint32_t batch, bool and_reload) {
    const std::vector<RowRef> from = fast_->move_rows_to(batch);
    ASSERT_EQ(from.size(), rows_.size());
    for (const RowRef ref : from) ASSERT_EQ(std::ranges::count(rows_, ref, &Row::ref), 1);
    for (Row& row : rows_)
      row.ref = {batch, static_cast<uint32_t>(std::ranges::find(from, row.ref) - from.begin())};
    empty_batches_.clear();
    validate();
    if (!and_reload) return;

    ArchiveWriter out;
    fast_->save(out);
    const std::string bytes = out.take();
    ArchiveReader in(bytes);
    fast_ = std::make_unique<WindowState>(nullptr);
    fast_->load(in);
    ASSERT_TRUE(in.at_end());
    for (Row& row : rows_) row.ref.batch = 0;
    validate();
    ArchiveWriter again;
    fast_->save(again);
    ASSERT_EQ(bytes, again.take()) << "a state that was loaded is saved as something else";
  }

  void validate() {
    ASSERT_EQ(fast_->validate(), "");
    ASSERT_EQ(fast_->live_rows(), rows_.size());
    const bool any_late = std::ranges::any_of(rows_, &Row::late);
    ASSERT_TRUE(!any_late || !fast_->in_time_order());
    for (const Row& row : rows_) ASSERT_LE(fast_->oldest(), row.time);
    std::map<uint32_t, size_t> of_batch;
    for (const Row& row : rows_) ++of_batch[row.ref.batch];
    for (const auto& [batch, count] : of_batch) ASSERT_EQ(fast_->rows_of_batch(batch), count);
    for (const uint32_t batch : fast_->take_empty_batches()) {
      ASSERT_EQ(empty_batches_.erase(batch), 1u) << "batch " << batch << " is not empty or was named before";
    }
    ASSERT_TRUE(empty_batches_.empty()) << "a batch is empty and was not named";
  }

  void expect_same_rows() {
    std::vector<Row> all;
    fast_->for_each_row([&](TNode& row) { all.push_back(row_of(row)); });
    ASSERT_EQ(all.size(), rows_.size());
    for (const Row& row : rows_) {
      ASSERT_EQ(std::ranges::count_if(all, [&](const Row& other) { return same(row, other); }), 1);
      if (rows_.size() < 200) look(row.key);
    }
  }

 private:
  static Row row_of(const TNode& node) {
    return {node.time, node.key, node.row(), node.is(TNode::kLate), node.is(TNode::kMatched)};
  }
  static bool same(const Row& a, const Row& b) {
    return a.time == b.time && a.key == b.key && a.ref == b.ref && a.late == b.late && a.matched == b.matched;
  }
  static bool same(const TNode& node, const Row& row) { return same(row_of(node), row); }
  static void expect_same(const std::vector<Row>& a, const std::vector<Row>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_TRUE(same(a[i], b[i])) << "row " << i;
  }

  void add(Row row, uint32_t index) {
    if (row.matched) fast_->node(index).mark(TNode::kMatched);
    rows_.push_back(row);
    validate();
  }
  std::vector<Row> of_key(Code key) const {
    std::vector<Row> found;
    for (const Row& row : rows_) {
      if (row.key == key) found.push_back(row);
    }
    return found;
  }
  void forget(RowRef ref) {
    std::erase_if(rows_, [&](const Row& row) { return row.ref == ref; });
    const auto of_batch = [&](const Row& row) { return row.ref.batch == ref.batch; };
    if (std::ranges::none_of(rows_, of_batch)) empty_batches_.insert(ref.batch);
  }

  std::unique_ptr<WindowState> fast_ = std::make_unique<WindowState>(nullptr);
  std::vector<Row> rows_;  // in the order of arrival
  std::set<uint32_t> empty_batches_;
  Time newest_ = 0;
};

}  // namespace streamjoin
