// Other controllers and their pods, which the operator may rescue. Each controller is a batch/v1
// Job of somebody else. It replaces pods that have ended or are gone, as the Job controller does.
// Some pods must never be freed: those without the label, without a controller, or with a claim.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/json.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

class OtherControllers {
 public:
  OtherControllers(Scheduler& scheduler, Gateway& gateway)
      : scheduler_(scheduler), gateway_(gateway) {}

  // `kinds`: as in others.cc; empty: all.
  void start(std::uint64_t seed, std::set<std::string> kinds = {});

 private:
  void look();
  void tend(int controller);
  void create_pod(int controller, const std::string& name);

  Scheduler& scheduler_;
  Gateway& gateway_;
  std::uint64_t seed_ = 0;
  std::set<std::string> kinds_;
  std::uint64_t made_ = 0;
};

// A pod of other controllers, with or without the label.
bool is_of_others(const Json& pod);
// It has the label, and the operator may free it. Then `window` is its own.
bool may_be_rescued(const Json& pod);
Duration rescue_window_of(const Json& pod);
// Its status says that Holdfast freed it.
bool is_freed(const Json& pod);

}  // namespace holdfast::simulation
