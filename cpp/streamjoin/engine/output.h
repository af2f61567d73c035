// Output: what one call of the operator gives back. Rows stay references; output punctuations are columns
// already.

#pragma once

#include <cstdint>
#include <vector>

#include "streamjoin/engine/attribute_column.h"
#include "streamjoin/join/results.h"

namespace streamjoin {

/// Output punctuations as columns, one entry each. An attribute is a constant, a range (an end that is null
/// is open), or `*` with neither.
struct OutputPunctuations {
  struct Attribute {
    AttributeColumn constant;
    AttributeColumn low;
    AttributeColumn high;
  };
  std::vector<Attribute> attributes;
  std::vector<uint8_t> kinds;
  std::vector<Time> times;
  std::vector<Time> untils;
};

struct Output {
  std::vector<ResultRow> rows;
  std::vector<RefusedRow> late;
  std::vector<RefusedRow> violations;
  OutputPunctuations punctuations;
};

}  // namespace streamjoin
