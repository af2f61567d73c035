// Window kernels: one stateless window join over two sets of rows that are both at hand, in any order.
//
//   right rows, grouped     group of key 7: |t=2 row 3|t=5 row 0|t=9 row 4|   group of key 9: |t=4 row 1| ...
//                                         `------- run -------`
//   left row k=7 t=3, bound -1 .. 2: times 2 .. 5 are its run
//
// The matches of a left row are one run of entries in the group of its key.
//
// A pair matches when the keys are equal, both are valid, and lower <= time(right) - time(left) <= upper,
// both ends inclusive. A bound at kBeginning or kEnd is infinitely far away, so `lower == kBeginning` and
// `upper == kEnd` are open ends. `lower > upper` is legal and matches nothing.
//
// Cost: O(m + n log m + pairs) when the right rows come in time order, and one sort of every group that does
// not; left rows in time order find their runs by walking forward instead of by search. The runs are counted
// before any result is written, so results are allocated once and exactly. Beside them: at most 60 bytes a
// right row, 8 to 16 a left row.
//
// No state outlives a call and nothing is shared: any number of threads may call at once. Columns are only
// read; the results belong to the caller.

#pragma once

#include <cstdint>
#include <vector>

#include "streamjoin/base/time.h"
#include "streamjoin/engine/grouped_rows.h"

namespace streamjoin {

/// The i-th pair is left row `left[i]` with right row `right[i]`.
struct RowPairs {
  std::vector<int64_t> left;
  std::vector<int64_t> right;
};

/// Every matching pair, ordered by left row, then by the right row's time, then by right row.
/// Throws UsageError when columns differ in length, when a time is one of the two extremes, or when a side
/// has 2^31 rows or more; std::bad_alloc when the pairs do not fit into memory.
RowPairs window_join(const TimedKeyColumns& left, const TimedKeyColumns& right, Duration lower,
                     Duration upper);

/// The left rows that have at least one match, each once, ascending. Throws as `window_join`.
std::vector<int64_t> window_semi_join(const TimedKeyColumns& left, const TimedKeyColumns& right,
                                      Duration lower, Duration upper);

/// The left rows that have no match, ascending; rows with a null key are among them. Throws as `window_join`.
std::vector<int64_t> window_anti_join(const TimedKeyColumns& left, const TimedKeyColumns& right,
                                      Duration lower, Duration upper);

}  // namespace streamjoin
