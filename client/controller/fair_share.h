// How many slots each tenant may use: at most as many as are still free. So one tenant gets at most
// half of all, and each further tenant that fills up gets half of what the others left. Of 32 slots
// six tenants that hang get 16, 8, 4, 2, 1 and 1. A seventh waits until one of their requests ends
// or times out. Only a tenant that has no slot may take that one.
#pragma once

#include <string>
#include <unordered_map>

namespace holdfast::controller {

// A tenant is a namespace.
class FairShare {
 public:
  // `each`: the most for a single tenant. In all there are twice as many.
  explicit FairShare(int each) : all_(2 * each) {}

  bool admits(const std::string& tenant) const {
    const auto found = of_.find(tenant);
    return (found == of_.end() ? 0 : found->second) < all_ - in_use_;
  }
  void begin(const std::string& tenant) {
    ++in_use_;
    ++of_[tenant];
  }
  void end(const std::string& tenant) {
    --in_use_;
    if (--of_.at(tenant) == 0) of_.erase(tenant);
  }
  int in_use() const { return in_use_; }

 private:
  const int all_;
  int in_use_ = 0;
  std::unordered_map<std::string, int> of_;
};

}  // namespace holdfast::controller
