#include "streamjoin/base/key_bytes.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "streamjoin/base/check.h"

namespace streamjoin {
namespace {

constexpr char kNull = 0;
constexpr char kValue = 1;
constexpr char kEscaped = static_cast<char>(0xff);
constexpr uint64_t kSign = uint64_t{1} << 63;

template <typename Word>
Word read(const char* from) {
  Word word;
  std::memcpy(&word, from, sizeof(Word));
  return word;
}

template <typename Word>
void write(char* to, Word word) {
  std::memcpy(to, &word, sizeof(Word));
}

/// Non-zero exactly if one of the bytes of `word` is 0.
template <typename Word>
Word zero_byte(Word word) {
  constexpr Word ones = static_cast<Word>(~Word{0}) / 255;
  return static_cast<Word>((word - ones) & ~word & (ones << 7));
}

/// Copies content without a 00 byte. False, with rubbish at `out`, if there is one. The two loads of the last
/// branches overlap, which is what makes short strings cheap.
bool copy_plain(char* out, const char* in, size_t size) {
  if (size >= 8) {
    uint64_t zeros = 0;
    for (size_t at = 0; at + 8 < size; at += 8) {
      const uint64_t word = read<uint64_t>(in + at);
      zeros |= zero_byte(word);
      write(out + at, word);
    }
    const uint64_t last = read<uint64_t>(in + size - 8);
    write(out + size - 8, last);
    return (zeros | zero_byte(last)) == 0;
  }
  if (size >= 4) {
    const uint32_t first = read<uint32_t>(in);
    const uint32_t last = read<uint32_t>(in + size - 4);
    write(out, first);
    write(out + size - 4, last);
    return (zero_byte(first) | zero_byte(last)) == 0;
  }
  for (size_t at = 0; at < size; ++at) {
    if (in[at] == 0) return false;
    out[at] = in[at];
  }
  return true;
}

char* copy_escaped(char* out, std::string_view content) {
  for (const char byte : content) {
    *out++ = byte;
    if (byte == 0) *out++ = kEscaped;
  }
  return out;
}

char* write_word(char* out, uint64_t word) {
  *out = kValue;
  write(out + 1, __builtin_bswap64(word));
  return out + 9;
}

uint64_t read_word(std::string_view attribute) {
  SJ_CHECK(attribute.size() == 9 && attribute[0] == kValue, "key attribute is not a value of 8 bytes");
  return __builtin_bswap64(read<uint64_t>(attribute.data() + 1));
}

/// Where the content that starts at `at` ends: the position of its closing 00 00.
size_t end_of_bytes(std::string_view key, size_t at) {
  while (true) {
    at = key.find('\0', at);
    SJ_CHECK(at != std::string_view::npos && at + 1 < key.size(), "key bytes have no end");
    if (key[at + 1] == 0) return at;
    SJ_CHECK(key[at + 1] == kEscaped, "key bytes hold an unknown escape");
    at += 2;
  }
}

size_t attribute_size(AttributeType type, std::string_view rest) {
  SJ_CHECK(!rest.empty(), "key has too few attributes");
  if (rest[0] == kNull) return 1;
  SJ_CHECK(rest[0] == kValue, "key attribute has an unknown marker");
  if (type.kind == AttributeKind::kBytes) return end_of_bytes(rest, 1) + 2;
  const size_t size = largest_encoding(type);
  SJ_CHECK(size <= rest.size(), "key ends inside an attribute");
  return size;
}

}  // namespace

size_t largest_encoding(AttributeType type) {
  switch (type.kind) {
    case AttributeKind::kInteger:
    case AttributeKind::kReal:
      return 9;
    case AttributeKind::kDecimal:
      return 1 + size_t{type.width};
    case AttributeKind::kBytes:
      return 0;
  }
  return 0;
}

char* write_null(char* out) {
  *out = kNull;
  return out + 1;
}

char* write_integer(char* out, int64_t value) {
  return write_word(out, static_cast<uint64_t>(value) ^ kSign);
}

char* write_real(char* out, double value) {
  if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
  if (value == 0) value = 0.0;
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  return write_word(out, (bits & kSign) != 0 ? ~bits : bits ^ kSign);
}

char* write_bytes(char* out, std::string_view content) {
  *out++ = kValue;
  if (copy_plain(out, content.data(), content.size())) [[likely]] {
    out += content.size();
  } else {
    out = copy_escaped(out, content);
  }
  out[0] = 0;
  out[1] = 0;
  return out + 2;
}

char* write_decimal(char* out, const void* little_endian, uint32_t width) {
  const char* in = static_cast<const char*>(little_endian);
  *out++ = kValue;
  for (uint32_t at = 0; at < width; ++at) out[at] = in[width - 1 - at];
  if (width > 0) out[0] = static_cast<char>(out[0] ^ '\x80');
  return out + width;
}

void append_null(std::string& out) {
  out.push_back(kNull);
}

void append_integer(std::string& out, int64_t value) {
  char buffer[9];
  write_integer(buffer, value);
  out.append(buffer, sizeof buffer);
}

void append_real(std::string& out, double value) {
  char buffer[9];
  write_real(buffer, value);
  out.append(buffer, sizeof buffer);
}

void append_bytes(std::string& out, std::string_view content) {
  out.push_back(kValue);
  for (size_t at = 0; at < content.size();) {
    const size_t zero = std::min(content.find('\0', at), content.size());
    out.append(content, at, zero - at);
    if (zero < content.size()) out.append({'\0', kEscaped});
    at = zero + 1;
  }
  out.append(2, '\0');
}

void append_decimal(std::string& out, const void* little_endian, uint32_t width) {
  const size_t start = out.size();
  out.resize(start + 1 + width);
  write_decimal(out.data() + start, little_endian, width);
}

void split(std::span<const AttributeType> types, std::string_view key, std::vector<std::string_view>& out) {
  out.clear();
  for (const AttributeType type : types) {
    const size_t size = attribute_size(type, key);
    out.push_back(key.substr(0, size));
    key.remove_prefix(size);
  }
  SJ_CHECK(key.empty(), "key has too many attributes");
}

bool attribute_fits(AttributeType type, std::string_view attribute) {
  return key_fits({&type, 1}, attribute);
}

bool key_fits(std::span<const AttributeType> types, std::string_view key) {
  try {
    std::vector<std::string_view> attributes;
    split(types, key, attributes);
    return true;
  } catch (const InternalError&) {
    return false;
  }
}

bool is_null(std::string_view attribute) {
  return attribute.size() == 1 && attribute[0] == kNull;
}

int64_t decode_integer(std::string_view attribute) {
  return static_cast<int64_t>(read_word(attribute) ^ kSign);
}

double decode_real(std::string_view attribute) {
  const uint64_t word = read_word(attribute);
  return std::bit_cast<double>((word & kSign) != 0 ? word ^ kSign : ~word);
}

std::string decode_bytes(std::string_view attribute) {
  SJ_CHECK(!attribute.empty() && attribute[0] == kValue, "key attribute is not a value of bytes");
  const size_t end = end_of_bytes(attribute, 1);
  SJ_CHECK(end + 2 == attribute.size(), "key bytes go on after their end");
  std::string content;
  content.reserve(end - 1);
  for (size_t at = 1; at < end; ++at) {
    content.push_back(attribute[at]);
    if (attribute[at] == 0) ++at;
  }
  return content;
}

void decode_decimal(std::string_view attribute, uint32_t width, void* little_endian) {
  SJ_CHECK(attribute.size() == 1 + size_t{width} && attribute[0] == kValue,
           "key attribute is not such a decimal");
  char* out = static_cast<char*>(little_endian);
  for (uint32_t at = 0; at < width; ++at) out[at] = attribute[width - at];
  if (width > 0) out[width - 1] = static_cast<char>(out[width - 1] ^ '\x80');
}

}  // namespace streamjoin
