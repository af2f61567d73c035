// What an operator tells of its disorder stage, as a dict.

#pragma once

#include <pybind11/pybind11.h>

#include "streamjoin/engine/disorder_input.h"

namespace streamjoin::bindings {

namespace py = pybind11;

inline py::object disorder_state(const DisorderStage* stage) {
  using namespace py::literals;
  if (stage == nullptr) return py::none();
  const auto per_stream = [&](auto&& value) {
    py::tuple values(stage->streams());
    for (uint32_t stream = 0; stream < stage->streams(); ++stream) values[stream] = value(stream);
    return values;
  };
  py::dict state(
      "slack"_a = stage->slack(),
      "buffered"_a = per_stream([&](uint32_t stream) { return stage->buffered(stream); }),
      "behind"_a = per_stream([&](uint32_t stream) { return stage->behind(stream); }),
      "idle"_a = per_stream([&](uint32_t stream) { return stage->is_idle(stream); }),
      "clock"_a = stage->clock() == kBeginning ? py::object(py::none()) : py::cast(stage->clock()));
  if (const SlackTuner* tuner = stage->tuner()) {
    state["estimated_recall"] = tuner->estimated_recall();
    state["requirement"] = tuner->requirement();
    state["why"] = in_words(tuner->why());
    state["adaptations"] = tuner->adaptations();
    state["steps"] = tuner->steps();
  }
  return state;
}

}  // namespace streamjoin::bindings
