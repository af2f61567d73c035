#include "streamjoin/disorder/synchronizer.h"

#include <algorithm>

namespace streamjoin {

bool Synchronizer::drain(std::vector<ReleasedRow>& released, size_t most) {
  const size_t enough = most > released.max_size() - released.size() ? most : released.size() + most;
  while (released.size() < enough) {
    Time first = kEnd;
    Time waits_for = kEnd;  // of a stream with nothing here, nothing after this may go yet
    for (const Stream& stream : streams_) {
      if (!stream.waiting.empty()) {
        first = std::min(first, stream.waiting.front().time);
      } else if (!stream.idle) {
        waits_for = std::min(waits_for, stream.promised);
      }
    }
    if (first == kEnd || first > waits_for) return false;
    clock_ = first;
    for (uint32_t number = 0; number < streams_.size(); ++number) {
      SortedBuffer& waiting = streams_[number].waiting;
      for (; !waiting.empty() && waiting.front().time == first; waiting.pop())
        released.push_back({waiting.front(), number});
    }
  }
  return true;
}

bool Synchronizer::waits_for_another(uint32_t stream, Time time) const {
  for (uint32_t other = 0; other < streams_.size(); ++other) {
    if (other != stream && streams_[other].waiting.empty() && !streams_[other].idle &&
        streams_[other].promised < time)
      return true;
  }
  return false;
}

void Synchronizer::promise(uint32_t stream, Time time, std::vector<ReleasedRow>& released) {
  streams_[stream].promised = std::max(streams_[stream].promised, time);
  drain(released);
}

void Synchronizer::set_idle(uint32_t stream, bool idle, std::vector<ReleasedRow>& released) {
  if (streams_[stream].idle == idle) return;
  streams_[stream].idle = idle;
  if (idle) drain(released);
}

void Synchronizer::release_all(std::vector<ReleasedRow>& released) {
  for (Stream& stream : streams_) stream.promised = kEnd;
  drain(released);
}

Time Synchronizer::promised_by_all() const {
  Time least = kEnd;
  bool any = false;
  for (const Stream& stream : streams_) {
    if (stream.idle) continue;
    least = std::min(least, stream.promised);
    any = true;
  }
  return any ? least : kBeginning;
}

size_t Synchronizer::memory_bytes() const {
  size_t bytes = 0;
  for (const Stream& stream : streams_) bytes += stream.waiting.memory_bytes();
  return bytes;
}

std::string Synchronizer::validate() const {
  for (const Stream& stream : streams_) {
    if (!stream.waiting.empty() && stream.waiting.front().time <= clock_)
      return "synchronizer: a row waits that is not later than the last released time";
    if (std::string broken = stream.waiting.validate(); !broken.empty()) return broken;
  }
  return {};
}

void Synchronizer::save(ArchiveWriter& out) const {
  out.value(clock_);
  for (const Stream& stream : streams_) {
    out.value(stream.promised);
    out.value(stream.idle);
    stream.waiting.save(out);
  }
}

void Synchronizer::load(ArchiveReader& in) {
  clock_ = in.value<Time>();
  for (Stream& stream : streams_) {
    stream.promised = in.value<Time>();
    stream.idle = in.value<bool>();
    stream.waiting.load(in);
  }
}

}  // namespace streamjoin
