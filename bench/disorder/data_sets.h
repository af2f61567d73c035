// The data sets of the experiments on disorder: rows in arrival order, and a join that only counts.
//
//   three_way    S1, S2, S3 (ts, a1); delays Zipf 2.0, 3.0, 3.0 over 0 .. 20 s; windows 5 s; a1 equal
//   four_way     S1 (a1, a2, a3) with S2 (a1), S3 (a2), S4 (a3); delays Zipf 3.0, 3.0, 3.0, 4.0; windows 3 s
//   soccer_like  positions of two teams; windows 5 s; distance below 5; delays up to 26 s, most of them small
//
// Times in milliseconds, 100 rows a second and stream in the first two. Attributes are Zipf over 1 .. 100
// with a skew that starts at 1.0 and changes within 0 .. 5 every 1 to 10 minutes. Delays are multiples of 10
// ms.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "streamjoin/base/time.h"

namespace streamjoin::bench {

struct DataRow {
  uint32_t stream;
  Time time;
  std::array<uint8_t, 3> keys{};
  float x = 0;
  float y = 0;
};

struct DataSet {
  std::string name;
  size_t streams;
  Duration window;
  std::vector<DataRow> rows;  // in arrival order
};

class Zipf {
 public:
  Zipf(size_t values, double skew) {
    double total = 0;
    for (size_t rank = 1; rank <= values; ++rank)
      sums_.push_back(total += std::pow(static_cast<double>(rank), -skew));
  }
  template <typename Random>
  size_t operator()(Random& random) const {
    const double at = std::uniform_real_distribution<double>(0, sums_.back())(random);
    return static_cast<size_t>(std::lower_bound(sums_.begin(), sums_.end(), at) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

/// A value whose skew changes now and then.
class DriftingKey {
 public:
  explicit DriftingKey(uint64_t seed) : random_(seed), zipf_(100, 1.0) { plan(0); }
  uint8_t operator()(Time now) {
    if (now >= change_) {
      zipf_ = Zipf(100, std::uniform_real_distribution<double>(0, 5)(random_));
      plan(now);
    }
    return static_cast<uint8_t>(zipf_(random_));
  }

 private:
  void plan(Time now) { change_ = now + std::uniform_int_distribution<Time>(60'000, 600'000)(random_); }
  std::mt19937_64 random_;
  Zipf zipf_;
  Time change_ = 0;
};

inline DataSet synthetic(std::string name, std::vector<double> delay_skews, Duration window, Time length,
                         std::vector<std::vector<size_t>> attributes) {
  DataSet set{std::move(name), delay_skews.size(), window, {}};
  std::mt19937_64 random(16);
  std::vector<Zipf> delays;
  for (const double skew : delay_skews) delays.emplace_back(2001, skew);
  std::vector<std::vector<DriftingKey>> keys(set.streams);
  for (size_t stream = 0; stream < set.streams; ++stream) {
    for (size_t i = 0; i < attributes[stream].size(); ++i) keys[stream].emplace_back(100 * stream + i);
  }
  for (Time now = 10; now <= length; now += 10) {
    for (uint32_t stream = 0; stream < set.streams; ++stream) {
      DataRow row{stream, now - static_cast<Time>(delays[stream](random)) * 10};
      for (size_t i = 0; i < attributes[stream].size(); ++i)
        row.keys[attributes[stream][i]] = keys[stream][i](now);
      if (row.time > 0) set.rows.push_back(row);
    }
  }
  return set;
}

inline DataSet three_way(Time length) {
  return synthetic("three_way", {2.0, 3.0, 3.0}, 5'000, length, {{0}, {0}, {0}});
}
inline DataSet four_way(Time length) {
  return synthetic("four_way", {3.0, 3.0, 3.0, 4.0}, 3'000, length, {{0, 1, 2}, {0}, {1}, {2}});
}

/// Ten players a team run about on 105 x 68; each sends its position every 50 ms.
inline DataSet soccer_like(Time length) {
  DataSet set{"soccer_like", 2, 5'000, {}};
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> share(0, 1);
  std::normal_distribution<double> push(0, 1);
  struct Player {
    double x, y, vx = 0, vy = 0;
  };
  std::vector<Player> players;
  for (size_t i = 0; i < 20; ++i) players.push_back({share(random) * 105, share(random) * 68});
  std::vector<std::pair<Time, DataRow>> arrivals;
  const auto delay = [&]() -> Time {
    const double which = share(random);
    if (which < 0.90) return static_cast<Time>(std::exponential_distribution<double>(1 / 15.0)(random));
    if (which < 0.998) return static_cast<Time>(std::exponential_distribution<double>(1 / 120.0)(random));
    return static_cast<Time>(std::min(26'000.0, 500 * std::pow(1 - share(random), -1 / 1.2)));
  };
  for (Time now = 50; now <= length; now += 50) {
    const double ball_x = 52 + 45 * std::sin(static_cast<double>(now) / 9'000);
    const double ball_y = 34 + 28 * std::sin(static_cast<double>(now) / 5'300);
    for (size_t i = 0; i < players.size(); ++i) {
      Player& p = players[i];
      const double home_x = 5.25 * static_cast<double>(i % 10) + 26;
      p.vx = 0.97 * p.vx + 0.02 * (0.6 * ball_x + 0.4 * home_x - p.x) * 0.05 + 0.03 * push(random);
      p.vy = 0.97 * p.vy + 0.02 * (ball_y - p.y) * 0.05 + 0.03 * push(random);
      p.x = std::clamp(p.x + p.vx, 0.0, 105.0);
      p.y = std::clamp(p.y + p.vy, 0.0, 68.0);
      const Time time = now + static_cast<Time>(i) * 2;
      DataRow row{static_cast<uint32_t>(i / 10), time};
      row.x = static_cast<float>(p.x);
      row.y = static_cast<float>(p.y);
      arrivals.push_back({time + delay(), row});
    }
  }
  std::stable_sort(arrivals.begin(), arrivals.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [at, row] : arrivals) set.rows.push_back(row);
  return set;
}

/// Algorithm 2 that counts results instead of making them.
class CountingJoin {
 public:
  explicit CountingJoin(const DataSet& set) : set_(set), live_(set.streams), counts_(set.streams) {}

  /// Results that the row completes; none if it is behind.
  uint64_t add(const DataRow& row, bool behind, Time clock) {
    if (behind) {
      if (row.time >= clock - set_.window) insert(row);
      return 0;
    }
    for (uint32_t stream = 0; stream < set_.streams; ++stream) {
      if (stream == row.stream) continue;
      auto& live = live_[stream];
      while (!live.empty() && live.front().time < row.time - set_.window) {
        for (size_t i = 0; i < 3; ++i) --counts_[stream][i][live.front().keys[i]];
        live.pop_front();
      }
    }
    const uint64_t found = count(row);
    insert(row);
    return found;
  }

 private:
  void insert(const DataRow& row) {
    auto& live = live_[row.stream];
    auto at = live.end();
    while (at != live.begin() && (at - 1)->time > row.time) --at;
    live.insert(at, row);
    for (size_t i = 0; i < 3; ++i) ++counts_[row.stream][i][row.keys[i]];
  }
  uint64_t count(const DataRow& row) const {
    const auto in_window = [&](size_t stream, size_t attribute, const DataRow& of) {
      return static_cast<uint64_t>(counts_[stream][attribute][of.keys[attribute]]);
    };
    if (set_.streams == 2) {
      uint64_t near = 0;
      for (const DataRow& other : live_[1 - row.stream]) {
        const float dx = other.x - row.x, dy = other.y - row.y;
        near += dx * dx + dy * dy < 25;
      }
      return near;
    }
    if (set_.streams == 3) {
      uint64_t product = 1;
      for (size_t stream = 0; stream < 3; ++stream) {
        if (stream != row.stream) product *= in_window(stream, 0, row);
      }
      return product;
    }
    if (row.stream == 0) return in_window(1, 0, row) * in_window(2, 1, row) * in_window(3, 2, row);
    uint64_t sum = 0;
    const size_t own = row.stream - 1;
    for (const DataRow& hub : live_[0]) {
      if (hub.keys[own] != row.keys[own]) continue;
      uint64_t product = 1;
      for (size_t stream = 1; stream < 4; ++stream) {
        if (stream != row.stream) product *= in_window(stream, stream - 1, hub);
      }
      sum += product;
    }
    return sum;
  }

  const DataSet& set_;
  std::vector<std::deque<DataRow>> live_;
  std::vector<std::array<std::array<uint32_t, 101>, 3>> counts_;
};

}  // namespace streamjoin::bench
