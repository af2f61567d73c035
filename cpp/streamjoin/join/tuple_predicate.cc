#include "streamjoin/join/tuple_predicate.h"

#include <cmath>

namespace streamjoin {
namespace {

__extension__ using Wide = __int128;

bool all_integers(std::initializer_list<NumericValue> values) {
  for (const NumericValue& value : values) {
    if (!value.is_integer()) return false;
  }
  return true;
}

Wide magnitude(NumericValue a, NumericValue b) {
  const Wide difference = static_cast<Wide>(a.integer()) - b.integer();
  return difference < 0 ? -difference : difference;
}

template <typename Value>
bool compare(Value a, Comparison op, Value b) {
  switch (op) {
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kGreater:
      return a > b;
    case Comparison::kGreaterEqual:
      return a >= b;
    case Comparison::kEqual:
      return a == b;
    case Comparison::kNotEqual:
      return a != b;
  }
  return false;
}

class Band : public TuplePredicate {
 public:
  Band(ValueSlot a, ValueSlot b, NumericValue width) : a_(a), b_(b), width_(width) {}
  void evaluate(TupleView& tuples, std::span<uint8_t> holds) override {
    for (size_t i = 0; i < holds.size(); ++i) {
      const NumericValue a = tuples.value(i, a_.stream, a_.slot);
      const NumericValue b = tuples.value(i, b_.stream, b_.slot);
      if (a.is_null() || b.is_null()) {
        holds[i] = 0;
      } else if (all_integers({a, b, width_})) {
        holds[i] &= magnitude(a, b) <= width_.integer();
      } else {
        holds[i] &= std::abs(a.real() - b.real()) <= width_.real();
      }
    }
  }

 private:
  ValueSlot a_, b_;
  NumericValue width_;
};

class Distance : public TuplePredicate {
 public:
  Distance(ValueSlot ax, ValueSlot ay, ValueSlot bx, ValueSlot by, NumericValue limit)
      : ax_(ax), ay_(ay), bx_(bx), by_(by), limit_(limit) {}
  void evaluate(TupleView& tuples, std::span<uint8_t> holds) override {
    for (size_t i = 0; i < holds.size(); ++i) {
      const NumericValue ax = tuples.value(i, ax_.stream, ax_.slot);
      const NumericValue ay = tuples.value(i, ay_.stream, ay_.slot);
      const NumericValue bx = tuples.value(i, bx_.stream, bx_.slot);
      const NumericValue by = tuples.value(i, by_.stream, by_.slot);
      if (ax.is_null() || ay.is_null() || bx.is_null() || by.is_null()) {
        holds[i] = 0;
      } else if (all_integers({ax, ay, bx, by, limit_})) {
        holds[i] &= near(magnitude(ax, bx), magnitude(ay, by));
      } else {
        const double x = ax.real() - bx.real();
        const double y = ay.real() - by.real();
        const double limit = limit_.real();
        holds[i] &= limit > 0 && x * x + y * y < limit * limit;
      }
    }
  }

 private:
  // A leg that is as long as the limit settles it, so squares stay below 2^126.
  bool near(Wide x, Wide y) const {
    const Wide limit = limit_.integer();
    return x < limit && y < limit && x * x + y * y < limit * limit;
  }

  ValueSlot ax_, ay_, bx_, by_;
  NumericValue limit_;
};

class Compare : public TuplePredicate {
 public:
  Compare(ValueSlot a, Comparison op, ValueSlot b, NumericValue offset)
      : a_(a), b_(b), op_(op), offset_(offset) {}
  void evaluate(TupleView& tuples, std::span<uint8_t> holds) override {
    for (size_t i = 0; i < holds.size(); ++i) {
      const NumericValue a = tuples.value(i, a_.stream, a_.slot);
      const NumericValue b = tuples.value(i, b_.stream, b_.slot);
      if (a.is_null() || b.is_null()) {
        holds[i] = 0;
      } else if (all_integers({a, b, offset_})) {
        holds[i] &= compare<Wide>(a.integer(), op_, static_cast<Wide>(b.integer()) + offset_.integer());
      } else {
        holds[i] &= compare<double>(a.real(), op_, b.real() + offset_.real());
      }
    }
  }

 private:
  ValueSlot a_, b_;
  Comparison op_;
  NumericValue offset_;
};

}  // namespace

std::unique_ptr<TuplePredicate> make_band(ValueSlot a, ValueSlot b, NumericValue width) {
  return std::make_unique<Band>(a, b, width);
}
std::unique_ptr<TuplePredicate> make_distance(ValueSlot ax, ValueSlot ay, ValueSlot bx, ValueSlot by,
                                              NumericValue limit) {
  return std::make_unique<Distance>(ax, ay, bx, by, limit);
}
std::unique_ptr<TuplePredicate> make_compare(ValueSlot a, Comparison op, ValueSlot b, NumericValue offset) {
  return std::make_unique<Compare>(a, op, b, offset);
}

}  // namespace streamjoin
