// Reads lists of indexes that others may have written. Pure.
#pragma once

#include <string>

#include "reconciler/index_set.h"

namespace holdfast::controller {

// The indexes of a text such as "1,3-5" that are below `limit`. The schema cannot check all of a
// long text, so parts that are no index or range count as absent, and the order does not matter.
reconciler::IndexSet decode_indexes(const std::string& text, std::int64_t limit);

}  // namespace holdfast::controller
