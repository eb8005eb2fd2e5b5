#include "operator/notify/address_memory.h"

#include <algorithm>

namespace holdfast::notify {

std::vector<std::string> AddressMemory::in_order(std::vector<std::string> addresses,
                                                 SteadyTime now) const {
  const auto place_of = [&](const std::string& address) -> std::size_t {
    for (std::size_t place = 0; place < failures_.size(); ++place) {
      const auto& [failed, at] = failures_[place];
      if (failed == address && now - at < kRemembered) return place + 1;
    }
    return 0;
  };
  std::stable_sort(addresses.begin(), addresses.end(),
                   [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
  return addresses;
}

void AddressMemory::failed(const std::string& address, SteadyTime now) {
  worked(address);
  if (failures_.size() == kMost) failures_.pop_front();
  failures_.emplace_back(address, now);
}

void AddressMemory::worked(const std::string& address) {
  std::erase_if(failures_, [&](const auto& one) { return one.first == address; });
}

}  // namespace holdfast::notify
