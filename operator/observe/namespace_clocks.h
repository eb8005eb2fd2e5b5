// A LiveClock for each watched namespace, so that trouble with one namespace does not stop the
// windows of others. One watch for all namespaces has one clock. Pure: times are parameters.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/time.h"
#include "reconciler/staleness.h"

namespace holdfast::observe {

class NamespaceClocks {
 public:
  // Empty: all namespaces are watched together.
  explicit NamespaceClocks(const std::vector<std::string>& namespaces = {});

  // Updates the clocks from the watches. Calls `is_live` for each watched namespace; "" means all.
  void watch(const std::function<bool(const std::string& watched)>& is_live, SteadyTime now);
  // One of our consistent reads or writes succeeded.
  void proof(SteadyTime now);

  // A namespace that is not watched has a clock that never ran.
  reconciler::LiveTime read(const std::string& namespace_, SteadyTime now);

 private:
  std::map<std::string, reconciler::LiveClock> clocks_;
};

}  // namespace holdfast::observe
