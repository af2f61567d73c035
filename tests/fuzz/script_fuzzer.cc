// Script fuzzer: bytes are read as options and operations of a BinaryOperator. After each operation the
// invariants are validated, and every result row must be one that its join may give: rows that are held,
// equal keys, a time difference inside the bound.
//
//   script_fuzzer [--inputs N] [file ...]     runs N random inputs (seed printed, STREAMJOIN_SEED replays)
//   and the files given
//
// An input that fails is written to a file in the working directory and named.

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz_input.h"
#include "streamjoin/engine/binary_operator.h"

namespace streamjoin {
namespace {

struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool condition, const std::string& reason) {
  if (!condition) throw Broken(reason);
}

class Script {
 public:
  explicit Script(Choices choices) : choices_(choices) {
    kind_ = static_cast<KeyKind>(choices_.below(3));
    static constexpr std::array<std::optional<Duration>, 6> ends = {std::nullopt, -4, 0, 3, 9, kEnd};
    lower_ = ends[static_cast<size_t>(choices_.below(6))];
    upper_ = ends[static_cast<size_t>(choices_.below(6))];
    BinaryJoinOptions& join = options_.join;
    join.bounds = Bounds(lower_, upper_);
    join.type = static_cast<JoinType>(choices_.below(6));
    join.late = static_cast<LatePolicy>(choices_.below(3));
    join.violation = static_cast<ViolationPolicy>(choices_.below(3));
    for (SideOptions& side : join.sides) {
      side.implies = static_cast<Implies>(choices_.below(3));
      if (choices_.one_in(3)) side.lifespan = choices_.below(20);
    }
    join.use_windows = !choices_.one_in(8);
    options_.key_types = KeyColumns(kind_).types();
    options_.null_safe = KeyColumns(kind_).null_safe();
    operator_ = std::make_unique<BinaryOperator>(options_);
    if (choices_.one_in(6)) clock_ = {kEnd - 40, kEnd - 40};
    if (choices_.one_in(6)) clock_ = {kBeginning + 1, kBeginning + 1};
  }

  void run() {
    while (!choices_.at_end()) {
      step();
      const std::string broken = operator_->validate();
      require(broken.empty(), broken);
      for (const Side side : {kLeft, kRight}) {
        for (const uint32_t batch : operator_->take_empty_batches(side)) {
          require(operator_->rows_of_batch(side, batch) == 0, "a batch that is called empty has rows");
          std::erase_if(rows_[side], [&](const auto& row) { return row.first.first == batch; });
        }
      }
    }
    check(operator_->finish());
    const OperatorStats stats = operator_->stats();
    for (const Side side : {kLeft, kRight}) {
      require(stats.state_rows[side] == 0 && stats.dead_rows[side] == 0, "rows are left after the end");
      require(stats.state_keys[side] == 0, "keys are left after the end");
      require(stats.promises_held[side] == 0, "promises are left after the end");
    }
    require(stats.dictionary_entries == 0, "dictionary entries are left after the end");
    require(operator_->validate().empty(), operator_->validate());
  }

 private:
  struct Row {
    Time time;
    int key;
    bool null;
  };
  struct Refusal {};

  // Asks about nothing but held rows; may refuse to answer.
  class Asked : public Predicate {
   public:
    Asked(Script& script, bool refuses) : script_(script), refuses_(refuses) {}
    void evaluate(std::span<const ResultRow> candidates, std::span<uint8_t> holds) override {
      if (refuses_) throw Refusal{};
      for (size_t i = 0; i < candidates.size(); ++i) {
        script_.check(candidates[i]);
        holds[i] = (candidates[i].left.row + candidates[i].right.row) % 3 != 0;
      }
    }

   private:
    Script& script_;
    const bool refuses_;
  };

  Time moved(Side side, int step) {
    const Time time = std::clamp(add_saturating(clock_[side], step), kBeginning + 1, kEnd - 1);
    clock_[side] = std::max(clock_[side], time);
    return time;
  }

  void step() {
    const Side side = choices_.below(2) == 0 ? kLeft : kRight;
    switch (choices_.below(16)) {
      case 8:
      case 9:
      case 10:
      case 11: {
        std::vector<KeyPattern> patterns;
        for (int i = choices_.below(3); i >= 0; --i) patterns.push_back(KeyColumns(kind_).pattern(choices_));
        const Time time = choices_.one_in(3) ? kBeginning : moved(side, choices_.below(12) - 8);
        check(operator_->punctuate(side, patterns, time));
        break;
      }
      case 12:
        check(operator_->advance(side, moved(side, choices_.below(6))));
        break;
      case 13:
        compact(side, ++batches_);
        break;
      case 14:
        reload();
        break;
      case 15:
        operator_->stats();
        break;
      default:
        push(side);
    }
  }

  void push(Side side) {
    const uint32_t batch = ++batches_;
    std::vector<Time> times;
    KeyColumns keys(kind_);
    const int rows = choices_.one_in(20) ? 140 : choices_.below(6);
    for (int i = 0; i < rows; ++i) {
      const bool null = choices_.one_in(10);
      const int key = choices_.below(kKeys);
      times.push_back(moved(side, choices_.below(8) - (choices_.one_in(4) ? 6 : 0)));
      keys.append(key, null);
      rows_[side][{batch, static_cast<uint32_t>(i)}] = {times.back(), key, null};
    }
    KeyColumns promised(kind_);
    std::vector<int64_t> promised_before;
    std::vector<Time> promised_times;
    for (int row = 0; choices_.one_in(3) && row <= rows; row += choices_.below(4)) {
      promised_before.push_back(row);
      promised_times.push_back(choices_.one_in(3) ? kBeginning : clock_[side]);
      promised.append(choices_.below(kKeys), choices_.one_in(10));
    }
    const std::vector<KeyColumn> promised_keys = promised.columns();
    Asked predicate(*this, choices_.one_in(4));
    const bool ask = choices_.one_in(3);
    const bool compare = choices_.one_in(8);
    const std::string before = compare ? picture() : "";
    try {
      check(operator_->push(side, batch, times, keys.columns(), ask ? &predicate : nullptr,
                            {promised_before, promised_times, promised_keys}));
    } catch (const RefusedBatch&) {
      require(!compare || picture() == before, "a refused batch has changed the operator");
    } catch (const Refusal&) {
      require(!compare || picture() == before, "a predicate that threw has changed the operator");
    }
  }

  // The snapshot where keys are their own codes. Else a batch may change which codes are handed out next and
  // in which call an old pattern is forgotten, which is nobody's business: then the counts.
  std::string picture() {
    if (kind_ == KeyKind::kDirect) return operator_->save();
    const OperatorStats stats = operator_->stats();
    ArchiveWriter out;
    for (const Side side : {kLeft, kRight}) {
      for (const uint64_t count :
           {stats.state_rows[side], stats.state_keys[side], stats.counters[side].rows_in,
            stats.counters[side].purged, stats.counters[side].violations}) {
        out.value(count);
      }
      out.value(stats.clocks[side]);
    }
    out.value(stats.rows_out);
    out.value(stats.dictionary_entries);
    return out.take();
  }

  void compact(Side side, uint32_t batch) {
    const std::vector<RowRef> from = operator_->move_rows_to(side, batch);
    require(from.size() == operator_->live_rows(side), "not all live rows were moved");
    std::map<std::pair<uint32_t, uint32_t>, Row> moved_rows;
    for (uint32_t row = 0; row < from.size(); ++row) moved_rows[{batch, row}] = held(side, from[row]);
    rows_[side] = std::move(moved_rows);
  }

  void reload() {
    for (const Side side : {kLeft, kRight}) compact(side, 0);
    const std::string bytes = operator_->save();
    const OperatorStats before = operator_->stats();
    operator_ = std::make_unique<BinaryOperator>(options_);
    operator_->load(bytes);
    const OperatorStats after = operator_->stats();
    require(before.state_rows == after.state_rows, "a snapshot has other rows");
    require(before.state_keys == after.state_keys, "a snapshot has other keys");
    require(before.clocks == after.clocks && before.rows_out == after.rows_out,
            "a snapshot has other clocks or counts");
    require(before.dictionary_entries == after.dictionary_entries, "a snapshot has other dictionary entries");
    if (choices_.one_in(2) && !bytes.empty()) {
      BinaryOperator other(options_);
      try {
        other.load(
            std::string_view(bytes).substr(0, bytes.size() * static_cast<size_t>(choices_.below(256)) / 256));
        throw Broken("a snapshot that was cut off was loaded");
      } catch (const DamagedArchive&) {
      }
    }
  }

  const Row& held(Side side, RowRef row) const {
    const auto at = rows_[side].find({row.batch, row.row});
    require(at != rows_[side].end(), "a result speaks of a row that is not held");
    return at->second;
  }
  void check(const ResultRow& result) const {
    require(!(result.left == kNoRow) || !(result.right == kNoRow), "a result without rows");
    if (!(result.left == kNoRow)) held(kLeft, result.left);
    if (!(result.right == kNoRow)) held(kRight, result.right);
    if (result.left == kNoRow || result.right == kNoRow) return;
    const Row& left = held(kLeft, result.left);
    const Row& right = held(kRight, result.right);
    require(!left.null && !right.null && left.key == right.key, "a result of unequal keys");
    const Duration difference = subtract_saturating(right.time, left.time);
    require((!lower_ || difference >= *lower_) && (!upper_ || difference <= *upper_),
            "a result outside the bound");
  }
  void check(const Output& output) const {
    for (const ResultRow& row : output.rows) check(row);
    for (const auto* refused : {&output.late, &output.violations}) {
      for (const RefusedRow& row : *refused) held(row.side, row.row);
    }
    const OutputPunctuations& punctuations = output.punctuations;
    for (const OutputPunctuations::Attribute& attribute : punctuations.attributes) {
      for (const AttributeColumn* column : {&attribute.constant, &attribute.low, &attribute.high}) {
        require(column->size() == punctuations.kinds.size(),
                "columns of output punctuations differ in length");
      }
    }
  }

  Choices choices_;
  KeyKind kind_;
  std::optional<Duration> lower_, upper_;
  OperatorOptions options_;
  std::unique_ptr<BinaryOperator> operator_;
  std::array<std::map<std::pair<uint32_t, uint32_t>, Row>, 2> rows_;
  std::array<Time, 2> clock_{};
  uint32_t batches_ = 0;
};

}  // namespace
}  // namespace streamjoin

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    streamjoin::Script(streamjoin::Choices(data, size)).run();
  } catch (const std::exception& broken) {
    std::fprintf(stderr, "script_fuzzer: %s\n", broken.what());
    std::abort();
  }
  return 0;
}

#ifndef STREAMJOIN_LIBFUZZER
namespace {

/// The input is written out before it runs, so that a crash of any kind leaves it behind.
int run(const std::vector<uint8_t>& input, const char* name) {
  std::ofstream(name, std::ios::binary)
      .write(reinterpret_cast<const char*>(input.data()), static_cast<std::streamsize>(input.size()));
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return std::remove(name);
}

}  // namespace

int main(int count, char** arguments) {
  unsigned long inputs = 0;
  for (int i = 1; i < count; ++i) {
    if (std::string(arguments[i]) == "--inputs" && i + 1 < count) {
      inputs = std::strtoul(arguments[++i], nullptr, 10);
      continue;
    }
    std::ifstream file(arguments[i], std::ios::binary);
    const std::vector<uint8_t> input{std::istreambuf_iterator<char>(file), {}};
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  const char* given = std::getenv("STREAMJOIN_SEED");
  const unsigned long long seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("seed %llu, a failing input is left in fuzz_failure.bin\n", seed);
  std::fflush(stdout);
  std::mt19937_64 random(seed);
  for (unsigned long i = 0; i < inputs; ++i) {
    std::vector<uint8_t> input(20 + random() % 600);
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
    if (run(input, "fuzz_failure.bin") != 0) return 1;
  }
  return 0;
}
#endif
