// AttributeColumn: values of one join attribute on their way out, as a column. Decodes key bytes.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "streamjoin/base/key_bytes.h"

namespace streamjoin {

struct AttributeColumn {
  explicit AttributeColumn(AttributeType type_of_values) : type(type_of_values) {}

  AttributeType type;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::string bytes;             // of kBytes and kDecimal
  std::vector<int64_t> ends{0};  // of kBytes
  std::vector<uint8_t> valid;

  size_t size() const { return valid.size(); }

  void append_integer(int64_t value) {
    integers.push_back(value);
    valid.push_back(1);
  }

  void append_null() {
    valid.push_back(0);
    switch (type.kind) {
      case AttributeKind::kInteger:
        integers.push_back(0);
        break;
      case AttributeKind::kReal:
        reals.push_back(0);
        break;
      case AttributeKind::kBytes:
        ends.push_back(ends.back());
        break;
      case AttributeKind::kDecimal:
        bytes.append(type.width, '\0');
        break;
    }
  }

  void append_encoded(std::string_view attribute) {
    if (is_null(attribute)) {
      append_null();
      return;
    }
    valid.push_back(1);
    switch (type.kind) {
      case AttributeKind::kInteger:
        integers.push_back(decode_integer(attribute));
        break;
      case AttributeKind::kReal:
        reals.push_back(decode_real(attribute));
        break;
      case AttributeKind::kBytes:
        bytes += decode_bytes(attribute);
        ends.push_back(static_cast<int64_t>(bytes.size()));
        break;
      case AttributeKind::kDecimal:
        bytes.resize(bytes.size() + type.width);
        decode_decimal(attribute, type.width, bytes.data() + bytes.size() - type.width);
        break;
    }
  }
};

}  // namespace streamjoin
