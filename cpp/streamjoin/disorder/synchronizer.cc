#include "streamjoin/disorder/synchronizer.h"

#include <algorithm>

namespace streamjoin {

// `newest` has got rows since the last time, put together; kNobody: none, or a single one.
bool Synchronizer::drain(std::vector<ReleasedRow>& released, uint32_t newest, size_t most) {
  const size_t enough = most > released.max_size() - released.size() ? most : released.size() + most;
  if (std::all_of(streams_.begin(), streams_.end(), [](const Stream& s) { return s.waiting.is_run(); }))
    return drain_runs(released, newest, enough);
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
    const auto release = [&](uint32_t number, size_t rows) {
      SortedBuffer& waiting = streams_[number].waiting;
      for (; rows > 0 && !waiting.empty() && waiting.front().time == first; waiting.pop(), --rows)
        released.push_back({waiting.front(), number});
    };
    for (uint32_t number = 0; number < streams_.size(); ++number)
      release(number, number == newest ? 1 : ~size_t{0});
    if (newest != kNobody) release(newest, ~size_t{0});
  }
  return true;
}

// The same where no stream has rows beside its run, the common case.
bool Synchronizer::drain_runs(std::vector<ReleasedRow>& released, uint32_t newest, size_t enough) {
  Time waits_for = kEnd;
  Time first = kEnd;
  for (size_t number = 0; number < streams_.size(); ++number) {
    const Stream& stream = streams_[number];
    const std::span<const WaitingRow> run = stream.waiting.run();
    Head& head = heads_[number];
    head = {run.data(), run.data() + run.size(), run.empty() ? kEnd : run.front().time,
            stream.idle ? kEnd : stream.promised};
    if (run.empty()) waits_for = std::min(waits_for, head.blocks);
    first = std::min(first, head.time);
  }
  if (first == kEnd || first > waits_for) return false;
  const auto release = [&](uint32_t number, bool all) {
    Head& head = heads_[number];
    if (head.time != first) return;
    do {
      released.push_back({*head.at++, number});
    } while (all && head.at != head.end && head.at->time == first);
    head.time = head.at == head.end ? kEnd : head.at->time;
    if (head.at == head.end) waits_for = std::min(waits_for, head.blocks);
  };
  bool more = true;
  while (more && released.size() < enough) {
    clock_ = first;
    for (uint32_t number = 0; number < heads_.size(); ++number) release(number, number != newest);
    if (newest != kNobody) release(newest, true);
    first = kEnd;
    for (const Head& head : heads_) first = std::min(first, head.time);
    more = first != kEnd && first <= waits_for;
  }
  for (size_t number = 0; number < heads_.size(); ++number) {
    SortedBuffer& waiting = streams_[number].waiting;
    waiting.drop(static_cast<size_t>(heads_[number].at - waiting.run().data()));
  }
  return more;
}

bool Synchronizer::waits_for_another(uint32_t stream, Time time) const {
  for (uint32_t other = 0; other < streams_.size(); ++other) {
    const Stream& waited_for = streams_[other];
    if (other == stream || !waited_for.waiting.empty() || waited_for.idle) continue;
    if (waited_for.promised == kBeginning || waited_for.promised < time) return true;
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
