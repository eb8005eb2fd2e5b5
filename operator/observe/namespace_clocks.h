// A LiveClock for each watched namespace, so that trouble with one stops no other's windows. Where
// all namespaces are watched together there is one clock. Pure: times are handed in.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/time.h"
#include "reconciler/staleness.h"

namespace holdfast::controller {

class NamespaceClocks {
 public:
  // Empty: all namespaces are watched together.
  explicit NamespaceClocks(const std::vector<std::string>& namespaces = {});

  // What the watches are now. `is_live` is asked of each watched namespace; "" stands for all.
  void watch(const std::function<bool(const std::string& watched)>& is_live, SteadyTime now);
  // A consistent read or write of ours succeeded.
  void proof(SteadyTime now);

  // Of a namespace that is not watched: a clock that never ran.
  reconciler::LiveTime read(const std::string& namespace_, SteadyTime now);

 private:
  std::map<std::string, reconciler::LiveClock> clocks_;
};

}  // namespace holdfast::controller
