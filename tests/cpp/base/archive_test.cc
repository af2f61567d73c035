#include "streamjoin/base/archive.h"

#include <gtest/gtest.h>

#include <limits>

#include "streamjoin/base/time.h"

namespace streamjoin {
namespace {

enum class Colour : uint8_t { kRed = 3, kBlue = 200 };

std::string written() {
  ArchiveWriter out;
  out.value<int64_t>(std::numeric_limits<int64_t>::min());
  out.value(true);
  out.value(Colour::kBlue);
  out.text(std::string_view("a\0b", 3));
  out.text("");
  out.array(std::vector<uint32_t>{1, 0xffffffff});
  out.array(std::vector<Time>{});
  out.value(2.5);
  return out.take();
}

void read_all(ArchiveReader& in) {
  EXPECT_EQ(in.value<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(in.value<bool>());
  EXPECT_EQ(in.value<Colour>(), Colour::kBlue);
  EXPECT_EQ(in.text(), std::string("a\0b", 3));
  EXPECT_EQ(in.text(), "");
  EXPECT_EQ(in.array<uint32_t>(), (std::vector<uint32_t>{1, 0xffffffff}));
  EXPECT_EQ(in.array<Time>(), std::vector<Time>{});
  EXPECT_EQ(in.value<double>(), 2.5);
}

TEST(Archive, WhatIsWrittenIsRead) {
  const std::string bytes = written();
  ArchiveReader in(bytes);
  read_all(in);
  EXPECT_TRUE(in.at_end());
}

TEST(Archive, ValuesAreLittleEndianWithoutPadding) {
  ArchiveWriter out;
  out.value<uint8_t>(7);
  out.value<uint32_t>(0x01020304);
  out.text("x");
  EXPECT_EQ(out.take(), std::string("\7\4\3\2\1\1\0\0\0\0\0\0\0x", 14));
}

TEST(Archive, BytesThatEndTooEarlyAreRefusedWhereverTheyEnd) {
  const std::string bytes = written();
  for (size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly that length, so that a sanitizer sees a read too far.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
    ArchiveReader in(std::string_view(cut.data(), cut.size()));
    EXPECT_THROW(read_all(in), DamagedArchive) << length;
  }
}

TEST(Archive, ALengthThatCannotBeTrueAllocatesNothing) {
  for (const uint64_t length : {uint64_t{9}, uint64_t{1} << 61, std::numeric_limits<uint64_t>::max()}) {
    ArchiveWriter out;
    out.value(length);
    out.value<uint64_t>(0);
    const std::string bytes = out.take();
    ArchiveReader text(bytes);
    EXPECT_THROW(text.text(), DamagedArchive);
    ArchiveReader array(bytes);
    EXPECT_THROW(array.array<int64_t>(), DamagedArchive);
  }
}

TEST(Archive, AByteThatIsNeitherTrueNorFalseIsRefused) {
  ArchiveWriter out;
  out.value<uint8_t>(2);
  const std::string bytes = out.take();
  ArchiveReader in(bytes);
  EXPECT_THROW(in.value<bool>(), DamagedArchive);
}

}  // namespace
}  // namespace streamjoin
