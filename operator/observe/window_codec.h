// What a shard's Lease says of silences that its holder has seen, between text and values. Pure.
//
//   {"node/worker-1":["12345",33],"holder/media/holdfast-4f…":["12351",21]}
//
// subject: the mark that stands still (a resourceVersion, say), and the whole seconds for which a
// live watch has seen it stand still. Never a date: time in which nobody watched does not count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace holdfast::controller {

struct SilentSubject {
  std::string subject;  // "<kind>/<name>"
  std::uint64_t mark = 0;
  Duration silent{0};
};

// A node's name has at most 253 bytes, so this is far below the 256 KiB that an object's
// annotations may have together.
inline constexpr std::size_t kMostSubjects = 400;

// Of more than kMostSubjects the least silent are left out. Empty text: there are none.
std::string encode_windows(std::vector<SilentSubject> subjects);

// What is malformed or out of bounds is left out.
std::vector<SilentSubject> decode_windows(std::string_view text);

}  // namespace holdfast::controller
