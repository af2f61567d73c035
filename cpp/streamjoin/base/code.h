// Code: a key as the join sees it, always one 64-bit integer.
//
//   item_id = 180             -> 180     one integer attribute is its own code
//   ("de", 2024-05-01, null)  -> 7       all else is interned by a KeyDictionary: 0, 1, 2, ...
//
// Equal keys have equal codes and unequal keys unequal ones, so state and join compare codes and never look
// at bytes. Codes follow the order of the keys only where the key is its own code.

#pragma once

#include <cstdint>

namespace streamjoin {

using Code = int64_t;

/// What a lookup in a dictionary answers for bytes it does not hold. A legal code where keys are their own
/// codes.
inline constexpr Code kNoCode = -1;

}  // namespace streamjoin
