// An integer that holds every sum and difference of times: the judge of arithmetic that saturates.

#pragma once

namespace streamjoin {

__extension__ typedef __int128 Wide;  // no part of ISO C++, known to every compiler we build with

}  // namespace streamjoin
