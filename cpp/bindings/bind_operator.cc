// BinaryOperator: plain values and NumPy arrays in, arrays out. The GIL is released while the engine works.

#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <optional>
#include <tuple>

#include "arrays.h"
#include "disorder_state.h"
#include "docstrings.h"
#include "operator_arrays.h"
#include "streamjoin/engine/binary_operator.h"

namespace streamjoin::bindings {
namespace {

using namespace py::literals;

constexpr std::array<std::pair<const char*, JoinType>, 6> kJoinTypes{{{"inner", JoinType::kInner},
                                                                      {"left", JoinType::kLeft},
                                                                      {"right", JoinType::kRight},
                                                                      {"full", JoinType::kFull},
                                                                      {"left_semi", JoinType::kLeftSemi},
                                                                      {"left_anti", JoinType::kLeftAnti}}};

/// Asks a Python function about candidate rows.
class PythonPredicate : public Predicate {
 public:
  explicit PythonPredicate(py::function function) : function_(std::move(function)) {}
  ~PythonPredicate() override {
    const py::gil_scoped_acquire acquired;
    function_ = py::function();
  }

  void evaluate(std::span<const ResultRow> candidates, std::span<uint8_t> holds) override {
    const py::gil_scoped_acquire acquired;
    const auto mask =
        py::cast<py::array_t<uint8_t, py::array::c_style>>(function_(rows_to_array(candidates, py::none())));
    const std::span<const uint8_t> answers = flat<uint8_t>(mask);
    if (answers.size() != holds.size()) throw UsageError("a predicate must answer for every candidate");
    std::copy(answers.begin(), answers.end(), holds.begin());
  }

 private:
  py::function function_;
};

std::unique_ptr<BinaryOperator> make_operator(const std::string& how, std::optional<Duration> lower,
                                              std::optional<Duration> upper, const std::string& late,
                                              const std::string& on_violation,
                                              const std::array<std::string, 2>& implies,
                                              const std::array<std::optional<Duration>, 2>& lifespans,
                                              const std::vector<std::pair<std::string, uint32_t>>& key_types,
                                              const std::vector<bool>& null_safe, bool use_windows,
                                              bool use_punctuations, std::optional<DisorderOptions> disorder,
                                              const std::optional<py::function>& predicate) {
  OperatorOptions options;
  options.join.type = named(kJoinTypes, how);
  options.join.bounds = Bounds(lower, upper);
  options.join.late = named(kLatePolicies, late);
  options.join.violation = named(kViolationPolicies, on_violation);
  for (const Side side : {kLeft, kRight}) {
    options.join.sides[side] = {lifespans[side].value_or(kEnd), named(kImplies, implies[side])};
  }
  options.join.use_windows = use_windows;
  options.join.use_punctuations = use_punctuations;
  for (const auto& [kind, width] : key_types)
    options.key_types.push_back({named(kAttributeKinds, kind), width});
  options.null_safe = null_safe;
  options.disorder = std::move(disorder);
  if (predicate) options.waiting_predicate = std::make_shared<PythonPredicate>(*predicate);
  return std::make_unique<BinaryOperator>(std::move(options));
}

/// Before which rows, at which times, of which keys.
using PromisedArrays = std::tuple<Times, Times, std::vector<KeyArrays>>;

Output push(BinaryOperator& self, int side, uint32_t batch, const Times& times,
            const std::vector<KeyArrays>& keys, const std::optional<py::function>& predicate,
            const std::optional<PromisedArrays>& punctuations) {
  const std::vector<KeyColumn> columns = to_key_columns(keys, self.key_types());
  std::vector<KeyColumn> promised_columns;
  PromisedKeys promised;
  if (punctuations) {
    const auto& [before, promised_times, promised_keys] = *punctuations;
    promised_columns = to_key_columns(promised_keys, self.key_types());
    promised = {flat<int64_t>(before), flat<Time>(promised_times), promised_columns};
  }
  std::optional<PythonPredicate> asked;
  if (predicate) asked.emplace(*predicate);
  const py::gil_scoped_release released;
  return self.push(static_cast<Side>(side), batch, flat<Time>(times), columns, asked ? &*asked : nullptr,
                   promised);
}

Output punctuate(BinaryOperator& self, int side,
                 const std::vector<std::vector<std::optional<py::tuple>>>& patterns,
                 std::optional<Time> time) {
  std::vector<KeyPattern> converted = to_patterns(self.key_types(), patterns);
  const py::gil_scoped_release released;
  return self.punctuate(static_cast<Side>(side), std::move(converted), time.value_or(kBeginning));
}

py::dict stats(BinaryOperator& self) {
  const OperatorStats stats = self.stats();
  const auto counter = [&](uint64_t SideCounters::* member) {
    return py::make_tuple(stats.counters[kLeft].*member, stats.counters[kRight].*member);
  };
  return py::dict("rows_in"_a = counter(&SideCounters::rows_in),
                  "punctuations_in"_a = counter(&SideCounters::punctuations_in),
                  "purged"_a = counter(&SideCounters::purged),
                  "invalidated"_a = counter(&SideCounters::invalidated),
                  "discarded_on_the_fly"_a = counter(&SideCounters::discarded_on_the_fly),
                  "dropped_after_propagation"_a = counter(&SideCounters::dropped_after_propagation),
                  "violations"_a = counter(&SideCounters::violations),
                  "late"_a = counter(&SideCounters::late), "state_rows"_a = stats.state_rows,
                  "state_keys"_a = stats.state_keys, "promises_held"_a = stats.promises_held,
                  "rows_out"_a = stats.rows_out, "punctuations_out"_a = stats.punctuations_out,
                  "dictionary_entries"_a = stats.dictionary_entries, "state_bytes"_a = stats.state_bytes);
}

}  // namespace

void register_operator(py::module_& module) {
  static py::exception<RefusedBatch> refused(module, "RefusedBatch");
  refused.attr("__doc__") = doc::kRefused;
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const RefusedBatch& why) {
      const char* reason = why.why == RefusedBatch::Why::kLate ? "late" : "violation";
      PyErr_SetObject(refused.ptr(), py::make_tuple(reason, why.row, why.clock).ptr());
    }
  });
  py::register_exception<DamagedArchive>(module, "DamagedArchive", PyExc_ValueError).attr("__doc__") =
      doc::kDamaged;

  py::class_<Output>(module, "Output", doc::kOutput)
      .def_property_readonly(
          "rows", [](const py::object& self) { return rows_to_array(self.cast<const Output&>().rows, self); },
          doc::kRows)
      .def(
          "late", [](const Output& self) { return refused_arrays(self.late); }, doc::kLate)
      .def(
          "violations", [](const Output& self) { return refused_arrays(self.violations); }, doc::kViolations)
      .def(
          "take_punctuations", [](Output& self) { return punctuation_arrays(self.punctuations); },
          doc::kPunctuations);

  py::class_<BinaryOperator>(module, "BinaryOperator", doc::kOperator)
      .def(py::init(&make_operator), py::kw_only(), "how"_a, "lower"_a, "upper"_a, "late"_a, "on_violation"_a,
           "implies"_a, "lifespans"_a, "key_types"_a, "null_safe"_a, "use_windows"_a = true,
           "use_punctuations"_a = true, "disorder"_a = py::none(), "predicate"_a = py::none())
      .def("push", &push, doc::kPush, "side"_a, "batch"_a, "times"_a, "keys"_a, "predicate"_a = py::none(),
           "punctuations"_a = py::none())
      .def("punctuate", &punctuate, doc::kPunctuate, "side"_a, "patterns"_a, "time"_a = py::none())
      .def(
          "advance",
          [](BinaryOperator& self, int side, Time time) {
            return self.advance(static_cast<Side>(side), time);
          },
          doc::kAdvance, "side"_a, "time"_a)
      .def("finish", &BinaryOperator::finish, doc::kFinish)
      .def("look_at_clock", &BinaryOperator::look_at_clock, doc::kLookAtClock, "now"_a)
      .def("took_batch", &BinaryOperator::took_batch, doc::kTookBatch)
      .def(
          "disorder", [](const BinaryOperator& self) { return disorder_state(self.disorder()); },
          doc::kDisorder)
      .def(
          "take_empty_batches",
          [](BinaryOperator& self, int side) { return self.take_empty_batches(static_cast<Side>(side)); },
          doc::kTakeEmptyBatches, "side"_a)
      .def(
          "rows_of_batch",
          [](const BinaryOperator& self, int side, uint32_t batch) {
            return self.rows_of_batch(static_cast<Side>(side), batch);
          },
          doc::kRowsOfBatch, "side"_a, "batch"_a)
      .def(
          "live_rows",
          [](const BinaryOperator& self, int side) { return self.live_rows(static_cast<Side>(side)); },
          doc::kLiveRows, "side"_a)
      .def(
          "move_rows_to",
          [](BinaryOperator& self, int side, uint32_t batch) {
            return references_to_array(self.move_rows_to(static_cast<Side>(side), batch));
          },
          doc::kMoveRowsTo, "side"_a, "batch"_a)
      .def("stats", &stats, doc::kStats)
      .def(
          "clock",
          [](const BinaryOperator& self, int side) {
            return clock_or_none(self.clock(static_cast<Side>(side)));
          },
          doc::kClock, "side"_a)
      .def("validate", &BinaryOperator::validate, doc::kValidate)
      .def(
          "save", [](BinaryOperator& self) { return py::bytes(self.save()); }, doc::kSave)
      .def("load", &BinaryOperator::load, doc::kLoad, "bytes"_a);
}

}  // namespace streamjoin::bindings
