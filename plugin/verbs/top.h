// `top`: the jobs as a table, the worst first.
//
// Pure. Texts of the cluster are cleaned of control characters.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/time.h"

namespace holdfast::plugin {

struct TopLook {
  bool with_namespace = false;
  bool wide = false;  // more columns
  bool unicode = true;
  // A live screen: a first line sums up, columns shrink to the width, and what does not fit below
  // is counted. Otherwise a plain table, which nothing is cut from.
  bool live = false;
  std::size_t width = 80;   // of a live screen
  std::size_t height = 24;  // of a live screen
};

// The jobs are DurableJobs as the API server returns them.
std::vector<std::string> top_table(const std::vector<const Json*>& jobs, Time now,
                                   const TopLook& look);

}  // namespace holdfast::plugin
