// Results: what one call of the join produced. Rows are references; columns are gathered from them at the
// end.

#pragma once

#include <cstdint>
#include <vector>

#include "streamjoin/base/code.h"
#include "streamjoin/base/time.h"
#include "streamjoin/join/bounds.h"
#include "streamjoin/state/nodes.h"

namespace streamjoin {

/// A result row; kNoRow where a side is missing.
struct ResultRow {
  RowRef left;
  RowRef right;
};

enum class PropagationKind : uint8_t { kRegular, kEarly, kImmediate };
inline constexpr size_t kPropagationKinds = 3;

/// No result emitted after this one has a key in low .. high (`any`: no result at all).
struct OutputPunctuation {
  PropagationKind kind;
  bool any;
  Code low;
  Code high;
  Time time;
  Time until;
};

/// A row that was not processed: how far behind its stream's clock it came (zero for a violation).
struct RefusedRow {
  Side side;
  RowRef row;
  Duration late_by;
};

struct Results {
  std::vector<ResultRow> rows;
  std::vector<OutputPunctuation> punctuations;
  std::vector<RefusedRow> late;
  std::vector<RefusedRow> violations;
};

/// Rows and punctuations counted since the join began, per stream.
struct SideCounters {
  uint64_t rows_in = 0;
  uint64_t punctuations_in = 0;
  uint64_t purged = 0;
  uint64_t invalidated = 0;
  uint64_t discarded_on_the_fly = 0;
  uint64_t dropped_after_propagation = 0;
  uint64_t violations = 0;
  uint64_t late = 0;
};

}  // namespace streamjoin
