// Jobs with podReplacementPolicy Failed without a running attempt. Their pod may still come,
// because a request to create it had no answer. Until its time is over, such a job keeps its
// permit.
//
// Without I/O: times are parameters. Loop only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/time.h"
#include "operator/codecs/job_codec.h"

namespace holdfast::queues {

class ComingPods {
 public:
  // Whether a request for a pod of an ended attempt may still be applied, as far as the record
  // says. The time is taken once for each attempt.
  bool may_come(const codecs::CachedJob& job, Time now, SteadyTime steady);
  // The controller of jobs knows better: none comes. True: that is news.
  bool none_comes(const codecs::CachedJob& job, SteadyTime steady);
  void forget(const codecs::CachedJob& job);
  void clear() { by_namespace_.clear(); }

  struct Look {
    std::vector<std::string> over;  // keys of jobs whose time is over; each is reported once
    std::optional<Duration> next;   // when to look again
  };
  Look look(const std::string& namespace_, SteadyTime steady);

 private:
  struct Coming {
    std::int64_t attempt = 0;  // the job's last one
    SteadyTime until{};
    bool is_over = false;  // and that was reported
  };
  Coming* find(const codecs::CachedJob& job);

  std::unordered_map<std::string, std::unordered_map<std::string, Coming>> by_namespace_;
};

}  // namespace holdfast::queues
