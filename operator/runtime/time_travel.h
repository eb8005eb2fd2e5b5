// Notices that the API server's data was set back (restored from a snapshot). An informer sees it
// when it lists. Then the others have to list again too: they may be newer than the data. Loop
// only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/cache/informer.h"

namespace holdfast::runtime {

class TimeTravel {
 public:
  // True once for a restore.
  bool noticed(const std::vector<cache::Informer*>& informers) {
    std::uint64_t travels = 0;
    for (cache::Informer* informer : informers) travels += informer->time_travels();
    return std::exchange(travels_, travels) != travels;
  }

  // All that have not noticed it list again.
  void relist_others(const std::vector<cache::Informer*>& informers) {
    for (cache::Informer* informer : informers) {
      std::uint64_t& seen = seen_[informer];
      if (informer->time_travels() == seen) informer->relist();
      seen = informer->time_travels();
    }
  }

 private:
  std::uint64_t travels_ = 0;
  std::unordered_map<const cache::Informer*, std::uint64_t> seen_;
};

}  // namespace holdfast::runtime
