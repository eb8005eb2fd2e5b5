// Watches the caches from the start of the process until they are synced. It reports each 20 s what
// is missing, and says when to give up. Loop only.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/log.h"
#include "core/time.h"
#include "operator/runtime/work.h"

namespace holdfast::runtime {

class FirstSync {
 public:
  explicit FirstSync(Log log) : log_(std::move(log)) {}

  void begin(SteadyTime now) { began_ = reported_ = now; }

  struct Seen {
    bool is_ready = false;                // said once
    std::optional<std::string> too_late;  // why the process ends
  };
  Seen look(Work& work, SteadyTime now);

 private:
  Log log_;
  SteadyTime began_{};
  SteadyTime reported_{};
  bool ready_ = false;
};

}  // namespace holdfast::runtime
