// What a program of the papers' experiments writes, and how it shows that it is at work.
//
//   FOLDER/NAME.csv             figure, series, x, y         what the pictures are drawn from
//   FOLDER/NAME_findings.csv    figure, finding, value       what the documents quote
//
// Owned by main(); good() says at the end whether all of it was written.

#pragma once

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>

namespace streamjoin::bench {

class FigureFiles {
 public:
  FigureFiles(const std::string& folder, const std::string& name)
      : series_(folder + "/" + name + ".csv"), findings_(folder + "/" + name + "_findings.csv") {
    series_ << "figure,series,x,y\n";
    findings_ << "figure,finding,value\n";
  }

  /// A figure is a number, or text like "9a".
  template <typename Figure, typename X, typename Y>
  void point(const Figure& figure, const std::string& series, X x, Y y) {
    series_ << figure << ',' << series << ',' << x << ',' << y << '\n';
  }

  /// `finding` without commas: it is a field of the file.
  template <typename Figure>
  void finding(const Figure& figure, const std::string& finding, double value) {
    findings_ << figure << ',' << finding << ',' << value << '\n';
    std::cout << "figure " << figure << ": " << finding << ": " << value << std::endl;
  }

  bool good() const { return series_.good() && findings_.good(); }

 private:
  std::ofstream series_;
  std::ofstream findings_;
};

/// A bar on standard error, on a terminal only.
class Progress {
 public:
  explicit Progress(size_t steps) : steps_(steps) {}
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r\033[K");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step() {
    ++done_;
    if (!shown_) return;
    constexpr size_t kWidth = 24;
    const size_t filled = kWidth * done_ / steps_;
    std::fprintf(stderr, "\r[%s%s] %zu/%zu", std::string(filled, '#').c_str(),
                 std::string(kWidth - filled, '.').c_str(), done_, steps_);
  }

 private:
  size_t steps_;
  size_t done_ = 0;
  bool shown_ = isatty(STDERR_FILENO) != 0;
};

}  // namespace streamjoin::bench
