// Output: what one call of the operator gives back. Rows stay references; output punctuations are columns
// already.

#pragma once

#include <cstdint>
#include <vector>

#include "streamjoin/engine/attribute_column.h"
#include "streamjoin/join/results.h"
#include "streamjoin/punctuation/key_pattern.h"

namespace streamjoin {

/// Output punctuations as columns, one entry each. An attribute is a constant, a range (an end that is null
/// is open), or `*` with neither.
struct OutputPunctuations {
  struct Attribute {
    AttributeColumn constant;
    AttributeColumn low;
    AttributeColumn high;

    void append(const AttributePattern& pattern) {
      const bool constant_here = pattern.kind == AttributePattern::Kind::kConstant;
      const bool range = pattern.kind == AttributePattern::Kind::kRange;
      constant_here ? constant.append_encoded(pattern.low) : constant.append_null();
      range && !pattern.low_open ? low.append_encoded(pattern.low) : low.append_null();
      range && !pattern.high_open ? high.append_encoded(pattern.high) : high.append_null();
    }
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
