// JoinType, and the two questions that are asked of it.

#pragma once

#include <cstdint>

#include "streamjoin/join/bounds.h"

namespace streamjoin {

enum class JoinType : uint8_t { kInner, kLeft, kRight, kFull, kLeftSemi, kLeftAnti };

/// Whether an unmatched row of `side` is a result.
inline bool preserves(JoinType type, Side side) {
  if (side == kLeft) return type == JoinType::kLeft || type == JoinType::kFull || type == JoinType::kLeftAnti;
  return type == JoinType::kRight || type == JoinType::kFull;
}

/// Whether a key that is closed on `side` (promised there, with no row left) can have no further result,
/// whatever the other stream sends. A preserved other side still sends unmatched rows.
inline bool closing_ends_results(JoinType type, Side side) {
  return !preserves(type, other_side(side));
}

/// A left row is done with its first match: semi emits it then, anti never will.
inline bool first_match_decides(JoinType type) {
  return type == JoinType::kLeftSemi || type == JoinType::kLeftAnti;
}

}  // namespace streamjoin
