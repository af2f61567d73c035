#include "streamjoin/disorder/slack_tuner.h"

#include <algorithm>
#include <cmath>

namespace streamjoin {

const char* in_words(WhySlack why) {
  switch (why) {
    case WhySlack::kStart:
      return "no interval has ended yet";
    case WhySlack::kSame:
      return "the same slack is still the smallest that is enough";
    case WhySlack::kDelaysGrew:
      return "delays grew";
    case WhySlack::kDelaysShrank:
      return "delays shrank";
    case WhySlack::kRequirementRose:
      return "the period fell behind its target";
    case WhySlack::kRequirementFell:
      return "the period is ahead of its target";
  }
  return "";
}

SlackTuner::SlackTuner(RecallOptions options)
    : options_(std::move(options)),
      statistics_(options_.windows.size()),
      held_(options_.windows.size()),
      monitor_(static_cast<uint64_t>((options_.period - options_.adapt_every) / options_.adapt_every)),
      requirement_(options_.target) {
  for (Held& held : held_) held.heads.resize(options_.windows.size());
  for (size_t stream = 0; stream < held_.size(); ++stream) {
    reaches_.push_back(0);
    for (size_t i = 0; i < held_.size(); ++i) {
      if (i != stream) reaches_[stream] = std::max(reaches_[stream], options_.windows[stream][i]);
    }
  }
}

double SlackTuner::cross_results(size_t stream, Time time) {
  double product = 1;
  for (size_t j = 0; j < held_.size(); ++j) {
    if (j == stream) continue;
    Held& held = held_[j];
    size_t& head = held.heads[stream];
    const Time first = subtract_saturating(time, options_.windows[j][stream]);
    while (head < held.times.size() && held.times[head] < first) ++head;
    product *= static_cast<double>(held.times.size() - head);
  }
  return product;
}

// A stream whose partners never come moves no head: those of the others then lag behind for nothing. So rows
// are let go by the time alone.
void SlackTuner::hold(size_t stream, Time time) {
  Held& held = held_[stream];
  const Time first = subtract_saturating(time, reaches_[stream]);
  held.times.push_back(time);
  while (held.times[held.begin] < first) ++held.begin;
  if (held.begin < 1024 || held.begin * 2 < held.times.size()) return;
  held.times.erase(held.times.begin(), held.times.begin() + static_cast<std::ptrdiff_t>(held.begin));
  for (size_t& head : held.heads) head -= std::min(head, held.begin);
  held.begin = 0;
}

void SlackTuner::add_in_order(size_t stream, Time time, uint32_t delay, uint64_t results) {
  productivity_.add_in_order(delay, cross_results(stream, time), static_cast<double>(results));
  hold(stream, time);
}

void SlackTuner::add_out_of_order(size_t stream, Time clock, Time time, uint32_t delay) {
  productivity_.add_out_of_order(delay);
  // Counted as if it came at the clock: it may stay in the count a little too long, never in the way.
  if (time >= subtract_saturating(clock, reaches_[stream])) hold(stream, clock);
}

RecallModelInput SlackTuner::model_input() const {
  RecallModelInput input;
  double least_skew = 0;
  bool any = false;
  for (const StreamStatistics& statistics : statistics_) {
    if (statistics.rows() == 0) continue;
    least_skew = any ? std::min(least_skew, statistics.mean_skew()) : statistics.mean_skew();
    any = true;
  }
  for (const StreamStatistics& statistics : statistics_) {
    const double skew = statistics.rows() == 0 ? 0 : statistics.mean_skew() - least_skew;
    // Beyond this the skew covers every delay that is told apart.
    const double most = static_cast<double>(options_.granularity) * StreamStatistics::kMaxDelay;
    input.streams.push_back(
        {statistics.delays(), statistics.rows(), static_cast<Duration>(std::min(skew, most))});
    input.largest_delay = std::max<uint64_t>(input.largest_delay, statistics.largest_delay());
  }
  input.largest_delay = std::min<uint64_t>(input.largest_delay, StreamStatistics::kMaxDelay);
  input.windows = options_.windows;
  input.granularity = options_.granularity;
  input.basic_window = options_.basic_window;
  if (options_.learned_selectivity) {
    input.cross_results = last_.cross;
    input.join_results = last_.joined;
  }
  return input;
}

void SlackTuner::adapt(Time time) {
  const bool first = next_ == kBeginning;
  const Duration interval = options_.adapt_every;
  // Intervals are counted from the first row; empty ones are passed over at once.
  if (first) {
    next_ = add_saturating(time, interval);
    return;
  }
  const Duration passed = subtract_saturating(time, next_) / interval;
  for (StreamStatistics& statistics : statistics_) statistics.end_interval(interval);
  last_ = productivity_.end_interval();
  const double before = requirement_;
  // Before the first adaptation nothing was foretold: as if all had been.
  const double foretold = adaptations_ == 0 ? last_.due - last_.produced : last_.due * (1 - modelled_);
  monitor_.add({last_.produced, last_.due, foretold});
  for (Duration i = 0; i < std::min<Duration>(passed, options_.period / interval); ++i) monitor_.add({});
  requirement_ = monitor_.requirement(options_.target, last_.due);
  correction_ = monitor_.correction();
  const RecallModel model(model_input());
  const Duration old = choice_.slack;
  choice_ = model.smallest(asked_of_model(requirement_));
  modelled_ = choice_.recall;
  choice_.recall = std::max(0.0, 1 - correction_ * (1 - modelled_));
  if (choice_.slack == old) {
    why_ = WhySlack::kSame;
  } else {
    const Duration alone = model.smallest(asked_of_model(before)).slack;  // had the requirement stayed
    if (choice_.slack > old) {
      why_ = alone > old ? WhySlack::kDelaysGrew : WhySlack::kRequirementRose;
    } else {
      why_ = alone < old ? WhySlack::kDelaysShrank : WhySlack::kRequirementFell;
    }
  }
  next_ = add_saturating(next_, (passed + 1) * interval);
  ++adaptations_;
}

std::string SlackTuner::validate() const {
  for (const StreamStatistics& statistics : statistics_) {
    if (std::string broken = statistics.validate(); !broken.empty()) return broken;
  }
  for (const Held& held : held_) {
    if (!std::is_sorted(held.times.begin(), held.times.end())) return "slack tuner: held times out of order";
    if (held.begin > held.times.size()) return "slack tuner: more rows let go than were held";
  }
  return {};
}

void SlackTuner::save(ArchiveWriter& out) const {
  for (const StreamStatistics& statistics : statistics_) statistics.save(out);
  for (const Held& held : held_) {
    out.array(held.times);
    out.value<uint64_t>(held.begin);
    out.array(std::vector<uint64_t>(held.heads.begin(), held.heads.end()));
  }
  productivity_.save(out);
  monitor_.save(out);
  out.array(last_.cross);
  out.array(last_.joined);
  for (const double value : {last_.produced, last_.due, choice_.recall, requirement_, modelled_, correction_})
    out.value(value);
  out.value(choice_.slack);
  out.value(choice_.steps);
  out.value(why_);
  out.value(next_);
  out.value(adaptations_);
}

void SlackTuner::load(ArchiveReader& in) {
  for (StreamStatistics& statistics : statistics_) statistics.load(in);
  for (Held& held : held_) {
    held.times = in.array<Time>();
    held.begin = in.value<uint64_t>();
    const auto heads = in.array<uint64_t>();
    if (heads.size() != held.heads.size()) throw DamagedArchive("snapshot: of another number of streams");
    held.heads.assign(heads.begin(), heads.end());
  }
  productivity_.load(in);
  monitor_.load(in);
  last_.cross = in.array<double>();
  last_.joined = in.array<double>();
  for (double* value :
       {&last_.produced, &last_.due, &choice_.recall, &requirement_, &modelled_, &correction_})
    *value = in.value<double>();
  choice_.slack = in.value<Duration>();
  choice_.steps = in.value<uint64_t>();
  why_ = in.value<WhySlack>();
  next_ = in.value<Time>();
  adaptations_ = in.value<uint64_t>();
}

}  // namespace streamjoin
