// Encodes and decodes the silences that a shard's Lease records. Pure.
//
//   {"node/worker-1":["12345",33],"holder/media/holdfast-4f…":["12351",21]}
//
// Each subject has a mark (e.g. a resourceVersion), and a number of whole seconds: so long a live
// watch has seen no change of it. Never a date: time without a watch does not count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"

namespace holdfast::observe {

struct SilentSubject {
  std::string subject;  // "<kind>/<name>"
  std::uint64_t mark = 0;
  Duration silent{0};
};

// Node names have at most 253 bytes. So this is far below 256 KiB, the limit of an object's
// annotations.
inline constexpr std::size_t kMostSubjects = 400;

// Above kMostSubjects the namespaces share the room, and the least silent of each are left out.
// Empty text: no subjects.
std::string encode_windows(std::vector<SilentSubject> subjects);

// Leaves out malformed or out-of-range entries.
std::vector<SilentSubject> decode_windows(std::string_view text);

}  // namespace holdfast::observe
