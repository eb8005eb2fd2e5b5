// How many of something each tenant may have under way: no more than are free. So one tenant gets
// half of all at most, two a third each, and however many hang, another finds a free one.
#pragma once

#include <string>
#include <unordered_map>

namespace holdfast::controller {

// The tenant of a job's key is its namespace.
inline std::string tenant_of(const std::string& key) {
  const std::size_t slash = key.find('/');
  return key.substr(0, slash == std::string::npos ? 0 : slash);
}

class FairShare {
 public:
  // `each`: what one tenant alone may have; there are twice as many in all.
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
