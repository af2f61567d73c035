// Predicate: the residual condition of a join, asked about blocks of candidates whose keys and times already
// match.

#pragma once

#include <cstdint>
#include <span>

#include "streamjoin/join/results.h"

namespace streamjoin {

class Predicate {
 public:
  virtual ~Predicate() = default;

  /// Sets `holds[i]` to 1 where candidate i is a match and to 0 elsewhere. May throw: the join has changed
  /// nothing yet.
  virtual void evaluate(std::span<const ResultRow> candidates, std::span<uint8_t> holds) = 0;
};

}  // namespace streamjoin
