#include "operator/jobs/index_codec.h"

#include <algorithm>
#include <cstddef>

namespace holdfast::controller {

using reconciler::IndexSet;

IndexSet decode_indexes(const std::string& text, std::int64_t limit) {
  if (const auto whole = IndexSet::parse(text, limit - 1)) return *whole;
  IndexSet indexes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const auto part = IndexSet::parse(text.substr(begin, comma - begin), limit - 1);
    if (part) indexes.add(*part);
    begin = comma + 1;
  }
  return indexes;
}

}  // namespace holdfast::controller
