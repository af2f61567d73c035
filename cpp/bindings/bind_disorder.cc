// DisorderOptions: how an operator treats rows that come out of order. AdaptiveWindow: what it remembers of
// delays.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <optional>

#include "docstrings.h"
#include "operator_arrays.h"
#include "streamjoin/engine/disorder_input.h"

namespace streamjoin::bindings {
namespace {

using namespace py::literals;

constexpr std::array<std::pair<const char*, SlackPolicy>, 3> kPolicies{
    {{"fixed", SlackPolicy::kFixed},
     {"largest_delay", SlackPolicy::kLargestDelay},
     {"recall", SlackPolicy::kRecall}}};

DisorderOptions make_options(size_t streams, const std::string& policy, Duration slack,
                             std::optional<Duration> idle_after, bool idle_by_wall_clock, double target,
                             Duration period, Duration adapt_every, Duration granularity,
                             Duration basic_window, bool learned_selectivity,
                             std::vector<std::vector<Duration>> windows) {
  DisorderOptions options{streams, named(kPolicies, policy), slack, idle_after, idle_by_wall_clock, {}};
  options.recall = {
      target, period, adapt_every, granularity, basic_window, learned_selectivity, std::move(windows)};
  const bool sizes = granularity > 0 && basic_window > 0 && adapt_every > 0 && period >= adapt_every;
  if (options.policy == SlackPolicy::kRecall && (!sizes || options.recall.windows.size() != streams))
    throw UsageError("recall needs a window per pair of streams and durations above zero");
  return options;
}

}  // namespace

void register_disorder(py::module_& module) {
  py::class_<DisorderOptions>(module, "DisorderOptions", doc::kDisorderOptions)
      .def(py::init(&make_options), py::kw_only(), "streams"_a, "policy"_a, "slack"_a = 0,
           "idle_after"_a = py::none(), "idle_by_wall_clock"_a = false, "target"_a = 1.0, "period"_a = 1,
           "adapt_every"_a = 1, "granularity"_a = 1, "basic_window"_a = 1, "learned_selectivity"_a = true,
           "windows"_a = py::list());
  py::class_<Adwin>(module, "AdaptiveWindow", doc::kAdaptiveWindow)
      .def(py::init([](double delta) { return Adwin({.delta = delta}); }), "delta"_a = AdwinOptions{}.delta)
      .def("add", &Adwin::add, "value"_a, doc::kAdaptiveWindowAdd)
      .def("width", &Adwin::width, doc::kAdaptiveWindowWidth)
      .def("mean", &Adwin::mean, doc::kAdaptiveWindowMean)
      .def("variance", &Adwin::variance, doc::kAdaptiveWindowVariance);
}

}  // namespace streamjoin::bindings
