// Sizes, validation and snapshots of TuplePipeline.

#include "streamjoin/join/tuple_pipeline.h"

namespace streamjoin {

size_t TuplePipeline::memory_bytes() const {
  size_t bytes = 0;
  for (const auto* buffers : {&left_, &pending_}) {
    for (const Tuples& each : *buffers)
      bytes += each.rows.capacity() * sizeof(uint32_t) + each.times.capacity() * sizeof(Time) +
               each.masks.capacity() * sizeof(WindowMatrix::Mask);
  }
  return bytes;
}

std::string TuplePipeline::validate() const {
  for (size_t step = 1; step < left_.size(); ++step) {
    const Tuples& left = left_[step];
    for (size_t tuple = 0; tuple < left.size(); ++tuple) {
      WindowMatrix::Mask mask = matrix_.all();
      for (size_t stream = 0; stream < step; ++stream) {
        if (states_[stream]->time(left.rows_of(tuple)[stream]) != left.times_of(tuple)[stream])
          return "pipeline: a tuple with the time of another row";
        mask = fitting(mask, left.times_of(tuple), stream, left.times_of(tuple)[stream]);
      }
      if (mask != left.masks[tuple] || mask == 0) return "pipeline: a tuple is not in its windows";
    }
  }
  return {};
}

void TuplePipeline::save(ArchiveWriter& out) const {
  std::vector<std::vector<uint32_t>> numbers(states_.size());  // by stream and node
  for (size_t stream = 0; stream < states_.size(); ++stream) {
    uint32_t number = 0;
    for (const StreamState::Timed& entry : states_[stream]->all()) {
      if (entry.node >= numbers[stream].size()) numbers[stream].resize(entry.node + 1, kNoNode);
      numbers[stream][entry.node] = number++;
    }
  }
  for (size_t step = 1; step < states_.size(); ++step) {
    std::vector<uint32_t> rows;
    for (size_t tuple = 0; tuple < left_[step].size(); ++tuple) {
      for (size_t stream = 0; stream < step; ++stream)
        rows.push_back(numbers[stream][left_[step].rows_of(tuple)[stream]]);
    }
    out.array(rows);
  }
  std::vector<uint32_t> behind;
  for (const Behind& row : behind_) {
    behind.push_back(static_cast<uint32_t>(row.stream));
    behind.push_back(numbers[row.stream][row.node]);
  }
  out.array(behind);
}

void TuplePipeline::load(ArchiveReader& in) {
  const auto node_of = [&](size_t stream, uint32_t number) {
    if (stream >= states_.size() || number >= states_[stream]->all().size())
      throw DamagedArchive("a tuple of a row that is not there");
    return states_[stream]->all()[number].node;
  };
  for (size_t step = 1; step < states_.size(); ++step) {
    const auto rows = in.array<uint32_t>();
    if (rows.size() % step != 0) throw DamagedArchive("tuples of another number of streams");
    Tuples& left = left_[step];
    for (size_t at = 0; at < rows.size(); ++at) {
      const size_t stream = at % step;
      left.rows.push_back(node_of(stream, rows[at]));
      left.times.push_back(states_[stream]->time(left.rows.back()));
      if (stream + 1 < step) continue;
      WindowMatrix::Mask mask = matrix_.all();
      const Time* const times = left.times_of(left.masks.size());
      for (size_t each = 1; each < step; ++each) mask = fitting(mask, times, each, times[each]);
      if (mask == 0) throw DamagedArchive("a tuple is not in its windows");
      left.masks.push_back(mask);
    }
  }
  const auto behind = in.array<uint32_t>();
  if (behind.size() % 2 != 0) throw DamagedArchive("a row without a stream");
  for (size_t at = 0; at < behind.size(); at += 2)
    behind_.push_back({behind[at], node_of(behind[at], behind[at + 1])});
}

}  // namespace streamjoin
