// MultiOperator: plain values and NumPy arrays in, arrays out. The GIL is released while the engine works.

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <variant>

#include "arrays.h"
#include "disorder_state.h"
#include "docstrings.h"
#include "operator_arrays.h"
#include "streamjoin/engine/multi_operator.h"
#include "tuple_predicates.h"

namespace streamjoin::bindings {
namespace {

using namespace py::literals;

using NumberArray =
    std::variant<py::array_t<int64_t, py::array::c_style>, py::array_t<double, py::array::c_style>>;
using ValueArrays = std::pair<NumberArray, std::optional<py::array_t<uint8_t, py::array::c_style>>>;
using Alternatives = std::vector<std::vector<std::vector<std::optional<Duration>>>>;
using ClassTypes = std::vector<std::vector<std::pair<std::string, uint32_t>>>;

constexpr std::array<std::pair<const char*, MultiAlgorithm>, 5> kAlgorithms{
    {{"hash", MultiAlgorithm::kHash},
     {"merge_gca", MultiAlgorithm::kMergeGca},
     {"merge_lca", MultiAlgorithm::kMergeLca},
     {"nested_loop", MultiAlgorithm::kNestedLoop},
     {"nested_loop_pipeline", MultiAlgorithm::kNestedLoopPipeline}}};
constexpr std::array<std::pair<const char*, PurgeMode>, 3> kPurgeModes{
    {{"eager", PurgeMode::kEager}, {"lazy", PurgeMode::kLazy}, {"off", PurgeMode::kOff}}};

std::unique_ptr<MultiOperator> make_operator(
    const std::string& algorithm, const Alternatives& alternatives, const std::string& late,
    const std::string& on_violation, const ClassTypes& classes,
    const std::vector<std::vector<bool>>& null_safe, const std::vector<std::vector<size_t>>& attributes,
    std::vector<size_t> value_slots,
    const std::vector<std::pair<std::vector<size_t>, std::variant<py::tuple, py::function>>>& predicates,
    const std::optional<std::string>& purge, const std::vector<std::optional<Duration>>& lifespans,
    const std::vector<std::pair<std::string, std::vector<size_t>>>& implies,
    const std::vector<bool>& unordered, std::optional<DisorderOptions> disorder) {
  MultiOperatorOptions options;
  const size_t streams = attributes.size();
  PunctuationOptions& punctuations = options.join.punctuations;
  punctuations.used = purge.has_value();
  if (purge) punctuations.purge = named(kPurgeModes, *purge);
  for (const auto lifespan : lifespans) punctuations.lifespans.push_back(lifespan.value_or(kEnd));
  for (const auto& [kind, positions] : implies)
    punctuations.implied.push_back({named(kImplies, kind), positions});
  options.join.algorithm = named(kAlgorithms, algorithm);
  options.join.alternatives = alternatives;
  options.join.late = named(kLatePolicies, late);
  options.join.unordered = unordered;
  options.join.violation = named(kViolationPolicies, on_violation);
  if (value_slots.empty()) value_slots.resize(streams);
  options.join.value_slots = value_slots;
  if (null_safe.size() != classes.size())
    throw UsageError("null_safe must be given for each attribute class");
  for (size_t i = 0; i < classes.size(); ++i) {
    AttributeClass& each = options.classes.emplace_back();
    for (const auto& [kind, width] : classes[i]) each.types.push_back({named(kAttributeKinds, kind), width});
    each.null_safe = null_safe[i];
  }
  options.attributes = attributes;
  options.disorder = std::move(disorder);
  for (const auto& [named_streams, predicate] : predicates) {
    for (const size_t stream : named_streams) {
      if (stream >= streams) throw UsageError("a predicate names a stream that is not there");
    }
    std::shared_ptr<TuplePredicate> made;
    if (const auto* parts = std::get_if<py::tuple>(&predicate)) {
      made = NativePredicate(*parts, value_slots).make();
    } else {
      made = std::make_shared<PythonTuplePredicate>(std::get<py::function>(predicate));
    }
    options.join.conjuncts.push_back({named_streams, std::move(made)});
  }
  return std::make_unique<MultiOperator>(std::move(options));
}

size_t checked(const MultiOperator& self, size_t stream) {
  if (stream >= self.streams()) throw UsageError("no stream has the number " + std::to_string(stream));
  return stream;
}

using TakeBatch = MultiOutput (MultiOperator::*)(size_t, uint32_t, std::span<const Time>,
                                                 std::span<const std::vector<KeyColumn>>,
                                                 std::vector<NumericColumn>);

template <TakeBatch take>
MultiOutput with_batch(MultiOperator& self, size_t stream, uint32_t batch, const Times& times,
                       const std::vector<std::vector<KeyArrays>>& keys,
                       const std::vector<ValueArrays>& values) {
  const std::vector<size_t>& attributes = self.attributes(checked(self, stream));
  if (keys.size() != attributes.size()) throw UsageError("one key per attribute of the stream is needed");
  std::vector<std::vector<KeyColumn>> columns;
  for (size_t i = 0; i < keys.size(); ++i)
    columns.push_back(to_key_columns(keys[i], self.types(attributes[i])));
  if (values.size() != self.join().options().value_slots[stream])
    throw UsageError("one value column per slot of the stream is needed");
  std::vector<NumericColumn> numbers;
  for (const auto& [array, valid] : values) {
    NumericColumn& column = numbers.emplace_back();
    column.valid = valid ? valid->data() : nullptr;
    size_t rows = 0;
    if (const auto* integers = std::get_if<0>(&array)) {
      column.integers = integers->data();
      rows = flat<int64_t>(*integers).size();
    } else {
      column.reals = std::get<1>(array).data();
      rows = flat<double>(std::get<1>(array)).size();
    }
    if (rows != flat<Time>(times).size()) throw UsageError("value columns must be as long as the times");
  }
  const py::gil_scoped_release released;
  return (self.*take)(stream, batch, flat<Time>(times), columns, std::move(numbers));
}

MultiOutput punctuate(MultiOperator& self, size_t stream,
                      const std::vector<std::vector<std::optional<py::tuple>>>& patterns,
                      std::optional<Time> time) {
  std::vector<AttributeType> types;
  for (const size_t number : self.attributes(checked(self, stream)))
    types.insert(types.end(), self.types(number).begin(), self.types(number).end());
  std::vector<KeyPattern> converted = to_patterns(types, patterns);
  const py::gil_scoped_release released;
  return self.punctuate(stream, std::move(converted), time.value_or(kBeginning));
}

py::array_t<uint32_t> result_rows(const py::object& self) {
  const auto& output = self.cast<const MultiOutput&>();
  const auto streams = static_cast<py::ssize_t>(output.streams);
  const auto rows = static_cast<py::ssize_t>(output.rows.size() / output.streams);
  return py::array_t<uint32_t>({rows, streams, py::ssize_t{2}},
                               reinterpret_cast<const uint32_t*>(output.rows.data()), self);
}

py::dict stats(MultiOperator& self) {
  self.free_dead_rows();
  const MultiJoin& join = self.join();
  const auto per_stream = [&](auto&& value) {
    py::tuple values(self.streams());
    for (size_t stream = 0; stream < self.streams(); ++stream) values[stream] = value(stream);
    return values;
  };
  const auto counter = [&](uint64_t SideCounters::* member) {
    return per_stream([&](size_t stream) { return join.counters(stream).*member; });
  };
  py::list punctuations_out;
  for (size_t kind = 0; kind < kPropagationKinds; ++kind) {
    punctuations_out.append(join.punctuations_out(static_cast<PropagationKind>(kind)));
  }
  return py::dict(
      "rows_in"_a = counter(&SideCounters::rows_in),
      "punctuations_in"_a = counter(&SideCounters::punctuations_in),
      "purged"_a = counter(&SideCounters::purged), "invalidated"_a = counter(&SideCounters::invalidated),
      "discarded_on_the_fly"_a = counter(&SideCounters::discarded_on_the_fly),
      "dropped_after_propagation"_a = counter(&SideCounters::dropped_after_propagation),
      "violations"_a = counter(&SideCounters::violations), "late"_a = counter(&SideCounters::late),
      "state_rows"_a = per_stream([&](size_t stream) { return join.state(stream).live_rows(); }),
      "state_keys"_a = per_stream([&](size_t stream) { return join.state(stream).keys(); }),
      "promises_held"_a = per_stream([&](size_t stream) { return join.promises_held(stream); }),
      "rows_out"_a = join.rows_out(), "punctuations_out"_a = punctuations_out,
      "dictionary_entries"_a = self.dictionary_entries(), "state_bytes"_a = self.memory_bytes(),
      "probing_order"_a = per_stream([&](size_t stream) { return join.probing_order(stream); }));
}

}  // namespace

void register_multi_operator(py::module_& module) {
  py::class_<MultiOutput>(module, "MultiOutput", doc::kOutput)
      .def_property_readonly("rows", &result_rows, doc::kMultiRows)
      .def(
          "late", [](const MultiOutput& self) { return refused_arrays(self.late); }, doc::kLate)
      .def(
          "violations", [](const MultiOutput& self) { return refused_arrays(self.violations); },
          doc::kViolations)
      .def(
          "take_punctuations", [](MultiOutput& self) { return punctuation_arrays(self.punctuations); },
          doc::kPunctuations);

  py::class_<MultiOperator>(module, "MultiOperator", doc::kMultiOperator)
      .def(py::init(&make_operator), py::kw_only(), "algorithm"_a, "alternatives"_a, "late"_a,
           "on_violation"_a, "classes"_a, "null_safe"_a, "attributes"_a, "value_slots"_a = py::tuple(),
           "predicates"_a = py::tuple(), "purge"_a = py::none(), "lifespans"_a = py::tuple(),
           "implies"_a = py::tuple(), "unordered"_a = py::tuple(), "disorder"_a = py::none())
      .def("push", &with_batch<&MultiOperator::push>, doc::kMultiPush, "stream"_a, "batch"_a, "times"_a,
           "keys"_a, "values"_a = py::tuple())
      .def("rehearse", &with_batch<&MultiOperator::rehearse>, doc::kMultiRehearse, "stream"_a, "batch"_a,
           "times"_a, "keys"_a, "values"_a = py::tuple())
      .def("punctuate", &punctuate, doc::kMultiPunctuate, "stream"_a, "patterns"_a, "time"_a = py::none())
      .def(
          "advance",
          [](MultiOperator& self, size_t stream, Time time) {
            return self.advance(checked(self, stream), time);
          },
          doc::kMultiAdvance, "stream"_a, "time"_a)
      .def("finish", &MultiOperator::finish, doc::kMultiFinish)
      .def("look_at_clock", &MultiOperator::look_at_clock, doc::kLookAtClock, "now"_a)
      .def("took_batch", &MultiOperator::took_batch, doc::kTookBatch)
      .def(
          "disorder", [](const MultiOperator& self) { return disorder_state(self.disorder()); },
          doc::kDisorder)
      .def(
          "take_empty_batches",
          [](MultiOperator& self, size_t stream) { return self.take_empty_batches(checked(self, stream)); },
          doc::kTakeEmptyBatches, "stream"_a)
      .def(
          "rows_of_batch",
          [](const MultiOperator& self, size_t stream, uint32_t batch) {
            return self.rows_of_batch(checked(self, stream), batch);
          },
          doc::kRowsOfBatch, "stream"_a, "batch"_a)
      .def(
          "live_rows",
          [](const MultiOperator& self, size_t stream) { return self.live_rows(checked(self, stream)); },
          doc::kMultiLiveRows, "stream"_a)
      .def(
          "move_rows_to",
          [](MultiOperator& self, size_t stream, uint32_t batch) {
            return references_to_array(self.move_rows_to(checked(self, stream), batch));
          },
          doc::kMultiMoveRowsTo, "stream"_a, "batch"_a)
      .def("stats", &stats, doc::kMultiStats)
      .def(
          "clock",
          [](const MultiOperator& self, size_t stream) {
            return clock_or_none(self.join().clock(checked(self, stream)));
          },
          doc::kMultiClock, "stream"_a)
      .def(
          "horizon",
          [](MultiOperator& self, size_t stream) {
            return clock_or_none(self.join().horizon(checked(self, stream)));
          },
          doc::kMultiHorizon, "stream"_a)
      .def("validate", &MultiOperator::validate, doc::kValidate)
      .def(
          "save", [](MultiOperator& self) { return py::bytes(self.save()); }, doc::kSave)
      .def("load", &MultiOperator::load, doc::kLoad, "bytes"_a);
}

}  // namespace streamjoin::bindings
