// Three kinds of trouble, three ways to say it: UsageError when the caller is wrong, SJ_CHECK when we are
// wrong. Data that is merely as data is (a late row, a violation) is no error: it is a value that is counted.

#pragma once

#include <stdexcept>
#include <string>

namespace streamjoin {

/// The caller asked for something that makes no sense. Thrown before any state has changed.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// A broken promise of our own code.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace streamjoin

/// Always on; for the cold paths. The reason says what was broken, in words.
#define SJ_CHECK(condition, reason)                                                              \
  do {                                                                                           \
    if (!(condition)) [[unlikely]]                                                               \
      throw ::streamjoin::InternalError(std::string("streamjoin: internal error: ") + (reason)); \
  } while (false)
