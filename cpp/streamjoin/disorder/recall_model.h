// RecallModel: how much of the true result comes out under a slack K, and the smallest K that is enough.
//
//   delays of stream i under K     H_i(x) = rows of coarse delay <= x;  a shift by s_i = (K + skew_i) / g
//   in order when they join        H_i(s_i) / N_i
//   in the window when probed      C_ji(K) = sum over basic windows of b * H_j(s_j + age / g) / N_j
//   recall(K) = ratio(K) * sum_i [ in order_i * prod_j C_ji(K) ] / sum_i prod_j W_ji
//
// `ratio` is what the rows of small delay yield, compared with all rows; it need not be monotone in K, so no
// bisection finds the smallest K that is enough. All else only grows with K, to the last bit: among the
// slacks of a block none is enough if the block's largest ratio would not be at its largest slack. So the
// search halves blocks, leftmost first, and passes over those: it finds the K of the search through every K
// from zero on, or else the largest delay, and looks at few of them. Prefix sums of H make a step O(m * m)
// whatever the window is: when b is a multiple of g, or g of b. For any other pair a step walks the basic
// windows. Sums are integers, so both ways give the same bits. A plain value, built for one adaptation from
// the statistics. One thread.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "streamjoin/base/time.h"

namespace streamjoin {

struct RecallModelInput {
  struct Stream {
    /// Rows by coarse delay; what is above the last entry is only in `rows`.
    std::vector<uint64_t> delays;
    uint64_t rows = 0;
    /// What the synchronizer adds to the slack of this stream.
    Duration skew = 0;
  };
  std::vector<Stream> streams;
  /// window[j][i]: how far before a row of i its partners of j may lie.
  std::vector<std::vector<Duration>> windows;
  Duration granularity = 1;
  Duration basic_window = 1;
  /// Cross-join and join results of the last interval's rows, by coarse delay. Empty: every row is alike.
  std::vector<double> cross_results;
  std::vector<double> join_results;
  /// Coarse delay at which the search stops.
  uint64_t largest_delay = 0;
};

struct SlackChoice {
  Duration slack = 0;
  double recall = 1;   // the model's, of that slack; at most 1
  uint64_t steps = 0;  // times that the model was asked
};

__extension__ typedef unsigned __int128 WideSum;

class RecallModel {
 public:
  explicit RecallModel(RecallModelInput input);

  /// The recall under a slack of `steps` times the granularity; not clamped.
  double recall(uint64_t steps) const;
  /// The smallest slack whose recall reaches `requirement`, or else the largest delay.
  SlackChoice smallest(double requirement) const;

 private:
  struct Shape {
    uint64_t stride = 1;  // of the steps through H
    uint64_t repeat = 1;  // how often each is taken
    bool regular = true;
  };
  struct Sums {
    std::vector<uint64_t> at_most;  // H
    std::vector<uint64_t> strided;  // sums of H at x, x - stride, x - 2 stride ..
    uint64_t offset = 0;            // skew / g
  };

  uint64_t rows_at_most(size_t stream, uint64_t delay) const;
  WideSum strided_sum(size_t stream, uint64_t last) const;
  WideSum strided_range(size_t stream, uint64_t first, uint64_t count) const;
  double share_of_window(size_t stream, Duration window, uint64_t shift) const;
  double ratio(uint64_t steps) const;
  double largest_ratio(size_t level, uint64_t block) const;
  double recall_at(double ratio, uint64_t steps) const;
  uint64_t first_enough(double requirement, size_t level, uint64_t block, uint64_t& asked) const;

  static constexpr uint64_t kNone = ~uint64_t{0};
  RecallModelInput input_;
  Shape shape_;
  std::vector<Sums> sums_;
  /// By level and block of 2^level slacks: the largest ratio. Beyond the last entry it is that of level 0's
  /// last.
  std::vector<std::vector<double>> ratios_;
  double true_size_ = 0;
};

}  // namespace streamjoin
