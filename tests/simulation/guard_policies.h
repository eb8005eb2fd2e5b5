// The guard in the simulated world: its policies as objects, which somebody deletes or changes. The
// rules themselves are the server's own, so nothing else depends on them. Checks S27 Guarded: no
// attempt begins once a policy has been missing for longer than a replica may not know. That is
// shorter in a world where no fault keeps a replica from reading it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/simulation/api_server.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

class GuardPolicies {
 public:
  GuardPolicies(ApiServer& server, const Scheduler& scheduler,
                std::function<void(const std::string& what)> complain)
      : server_(server), scheduler_(scheduler), complain_(std::move(complain)) {}

  // They are there from now on, and replicas require them.
  void install(bool is_readable);
  bool installed() const { return installed_; }
  // One is deleted or changed until restore().
  void spoil(std::uint64_t seed);
  void restore();

  void applied(const Applied& write);

 private:
  void send(const char* method, const std::string& target, const std::string& body,
            const char* content_type = "");
  void create_all();

  ApiServer& server_;
  const Scheduler& scheduler_;
  std::function<void(const std::string&)> complain_;
  bool installed_ = false;
  Duration unknown_{0};
  std::optional<Duration> missing_since_;
};

}  // namespace holdfast::simulation
