#include "streamjoin/join/tuple_predicate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "streamjoin/base/time.h"

namespace streamjoin {
namespace {

__extension__ using Wide = __int128;

Wide magnitude(Wide a, Wide b) {
  return a < b ? b - a : a - b;
}

bool all_integers(const NumericValue* values, size_t count, NumericValue constant) {
  for (size_t i = 0; i < count; ++i) {
    if (!values[i].is_integer()) return false;
  }
  return constant.is_integer();
}

/// Calls `work` with the comparison as a function of two values.
template <typename Value, typename Work>
void with_comparison(Comparison op, Work&& work) {
  switch (op) {
    case Comparison::kLess:
      return work([](Value a, Value b) { return a < b; });
    case Comparison::kLessEqual:
      return work([](Value a, Value b) { return a <= b; });
    case Comparison::kGreater:
      return work([](Value a, Value b) { return a > b; });
    case Comparison::kGreaterEqual:
      return work([](Value a, Value b) { return a >= b; });
    case Comparison::kEqual:
      return work([](Value a, Value b) { return a == b; });
    case Comparison::kNotEqual:
      return work([](Value a, Value b) { return a != b; });
  }
}

template <typename Test>
void keep_where(std::span<uint8_t> holds, Test&& test) {
  uint8_t* const answers = holds.data();
  const size_t count = holds.size();
  for (size_t i = 0; i < count; ++i) answers[i] = static_cast<uint8_t>(answers[i] & uint8_t{test(i)});
}

class Band : public NativePredicate {
 public:
  Band(ValueSlot a, ValueSlot b, NumericValue width) : NativePredicate({a, b}), width_(width) {}

 protected:
  bool holds(const NumericValue* v) const override {
    if (all_integers(v, 2, width_)) return magnitude(v[0].integer(), v[1].integer()) <= width_.integer();
    return std::abs(v[0].real() - v[1].real()) <= width_.real();
  }
  bool judge_reals(bool, const double* bound, const double* const* run,
                   std::span<uint8_t> holds) const override {
    const double a = bound[0], width = width_.real();
    const double* const b = run[0];
    keep_where(holds, [=](size_t i) { return std::abs(a - b[i]) <= width; });
    return true;
  }
  bool judge_integers(bool, const int64_t* bound, const int64_t* const* run,
                      std::span<uint8_t> holds) const override {
    if (!width_.is_integer() || width_.integer() < 0) return false;
    const int64_t low = subtract_saturating(bound[0], width_.integer());
    const int64_t high = add_saturating(bound[0], width_.integer());
    const int64_t* const b = run[0];
    keep_where(holds, [=](size_t i) { return static_cast<bool>((low <= b[i]) & (b[i] <= high)); });
    return true;
  }

 private:
  NumericValue width_;
};

class Distance : public NativePredicate {
 public:
  Distance(ValueSlot ax, ValueSlot ay, ValueSlot bx, ValueSlot by, NumericValue limit)
      : NativePredicate({ax, ay, bx, by}), limit_(limit) {}

 protected:
  bool holds(const NumericValue* v) const override {
    if (all_integers(v, 4, limit_)) {
      // A leg that is as long as the limit settles it, so squares stay below 2^126.
      const Wide x = magnitude(v[0].integer(), v[2].integer());
      const Wide y = magnitude(v[1].integer(), v[3].integer());
      const Wide limit = limit_.integer();
      return x < limit && y < limit && x * x + y * y < limit * limit;
    }
    const double x = v[0].real() - v[2].real();
    const double y = v[1].real() - v[3].real();
    const double limit = limit_.real();
    return limit > 0 && x * x + y * y < limit * limit;
  }
  bool judge_reals(bool, const double* bound, const double* const* run,
                   std::span<uint8_t> holds) const override {
    const double ax = bound[0], ay = bound[1];
    const double* const bx = run[0];
    const double* const by = run[1];
    const double square = limit_.real() > 0 ? limit_.real() * limit_.real() : 0;
    keep_where(holds, [=](size_t i) {
      const double x = ax - bx[i], y = ay - by[i];
      return x * x + y * y < square;
    });
    return true;
  }
  bool judge_integers(bool, const int64_t*, const int64_t* const*, std::span<uint8_t>) const override {
    return false;
  }

 private:
  NumericValue limit_;
};

class Compare : public NativePredicate {
 public:
  Compare(ValueSlot a, Comparison op, ValueSlot b, NumericValue offset)
      : NativePredicate({a, b}), op_(op), offset_(offset) {}

 protected:
  bool holds(const NumericValue* v) const override {
    bool answer = false;
    if (all_integers(v, 2, offset_)) {
      const Wide b = static_cast<Wide>(v[1].integer()) + offset_.integer();
      with_comparison<Wide>(op_, [&](auto compare) { answer = compare(v[0].integer(), b); });
    } else {
      with_comparison<double>(
          op_, [&](auto compare) { answer = compare(v[0].real(), v[1].real() + offset_.real()); });
    }
    return answer;
  }
  bool judge_reals(bool first_bound, const double* bound, const double* const* run,
                   std::span<uint8_t> holds) const override {
    const double constant = bound[0], offset = offset_.real();
    const double* const values = run[0];
    with_comparison<double>(op_, [&](auto compare) {
      if (first_bound) {
        keep_where(holds, [=](size_t i) { return compare(constant, values[i] + offset); });
      } else {
        keep_where(holds, [=](size_t i) { return compare(values[i], constant + offset); });
      }
    });
    return true;
  }
  bool judge_integers(bool first_bound, const int64_t* bound, const int64_t* const* run,
                      std::span<uint8_t> holds) const override {
    if (!offset_.is_integer()) return false;
    const Wide constant = bound[0], offset = offset_.integer();
    const int64_t* const values = run[0];
    with_comparison<Wide>(op_, [&](auto compare) {
      if (first_bound) {
        keep_where(holds, [=](size_t i) { return compare(constant - offset, values[i]); });
      } else {
        keep_where(holds, [=](size_t i) { return compare(values[i], constant + offset); });
      }
    });
    return true;
  }

 private:
  Comparison op_;
  NumericValue offset_;
};

}  // namespace

void NativePredicate::evaluate(TupleView& tuples, std::span<uint8_t> answers) {
  std::array<NumericValue, kMostSlots> values;
  for (size_t tuple = 0; tuple < answers.size(); ++tuple) {
    bool null = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      values[i] = tuples.value(tuple, slots_[i].stream, slots_[i].slot);
      null |= values[i].is_null();
    }
    if (null || !holds(values.data())) answers[tuple] = 0;
  }
}

void NativePredicate::judge(RunView& run, std::span<uint8_t> answers) const {
  std::array<NumericValue, kMostSlots> values;
  std::array<ValueRun, kMostSlots> arrays;
  std::array<bool, kMostSlots> in_run{};
  size_t bound = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    in_run[i] = slots_[i].stream == run.stream();
    if (in_run[i]) {
      arrays[i] = run.run(slots_[i].slot);
      continue;
    }
    values[i] = run.bound(slots_[i]);
    ++bound;
    if (!values[i].is_null()) continue;
    std::fill(answers.begin(), answers.end(), uint8_t{0});
    return;
  }
  const size_t half = slots_.size() / 2;
  if (bound == half && in_run[0] == in_run[half - 1]) {
    const bool first_bound = !in_run[0];
    if (judge_arrays(first_bound, &values[first_bound ? 0 : half], &arrays[first_bound ? half : 0], answers))
      return;
  }
  for (size_t at = 0; at < answers.size(); ++at) {
    if (answers[at] == 0) continue;
    bool null = false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (in_run[i]) values[i] = arrays[i].at(at);
      null |= values[i].is_null();
    }
    if (null || !holds(values.data())) answers[at] = 0;
  }
}

bool NativePredicate::judge_arrays(bool first_bound, const NumericValue* bound, const ValueRun* run,
                                   std::span<uint8_t> answers) const {
  const size_t half = slots_.size() / 2;
  bool reals = true;
  bool integers = true;
  for (size_t i = 0; i < half; ++i) {
    reals &= run[i].all_real;
    integers &= run[i].all_integer && bound[i].is_integer();
  }
  if (reals) {
    std::array<double, kMostSlots> constants;
    std::array<const double*, kMostSlots> arrays;
    for (size_t i = 0; i < half; ++i) {
      constants[i] = bound[i].real();
      arrays[i] = reinterpret_cast<const double*>(run[i].bits);
    }
    return judge_reals(first_bound, constants.data(), arrays.data(), answers);
  }
  if (!integers) return false;
  std::array<int64_t, kMostSlots> constants;
  std::array<const int64_t*, kMostSlots> arrays;
  for (size_t i = 0; i < half; ++i) {
    constants[i] = bound[i].integer();
    arrays[i] = reinterpret_cast<const int64_t*>(run[i].bits);
  }
  return judge_integers(first_bound, constants.data(), arrays.data(), answers);
}

std::unique_ptr<NativePredicate> make_band(ValueSlot a, ValueSlot b, NumericValue width) {
  return std::make_unique<Band>(a, b, width);
}
std::unique_ptr<NativePredicate> make_distance(ValueSlot ax, ValueSlot ay, ValueSlot bx, ValueSlot by,
                                               NumericValue limit) {
  return std::make_unique<Distance>(ax, ay, bx, by, limit);
}
std::unique_ptr<NativePredicate> make_compare(ValueSlot a, Comparison op, ValueSlot b, NumericValue offset) {
  return std::make_unique<Compare>(a, op, b, offset);
}

}  // namespace streamjoin
