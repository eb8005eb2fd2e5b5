// The targets of notifications in the simulated world: what they answer, and the truth about what
// they took. Some answer late, with an error, or not at all; until the faults stop.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/file_reader.h"
#include "operator/notify/poster.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

class Receivers {
 public:
  // chat takes all events, failures some of them. Jobs name no others.
  static const notify::Targets& targets();

  // From now on they take everything at once.
  void heal() { healthy_ = true; }

  enum class Way { kTakes, kTakesUnseen, kFails, kGone, kBusy, kHangs };
  // A message has arrived. `drawn` decides what it does with it.
  Way arrives(const std::string& target, const std::string& id, std::uint64_t drawn);

  // `id`: notify::message_id().
  bool has_taken(const std::string& target, const std::string& id) const {
    return taken_.count({target, id}) != 0;
  }
  bool has_refused(const std::string& target, const std::string& id) const {
    return refused_.count({target, id}) != 0;
  }

 private:
  using Deliveries = std::set<std::pair<std::string, std::string>>;
  bool healthy_ = false;
  Deliveries taken_;
  Deliveries refused_;
};

// One replica's way to them. Its answers end with it.
class SimPoster : public notify::Poster {
 public:
  SimPoster(Scheduler& scheduler, SimLoop& loop, Receivers& receivers, std::uint64_t seed)
      : scheduler_(scheduler), loop_(loop), receivers_(receivers), seed_(seed) {}
  ~SimPoster() override { *alive_ = false; }

  void post(const notify::Target& target, notify::Message message, Done done) override;

 private:
  Scheduler& scheduler_;
  SimLoop& loop_;
  Receivers& receivers_;
  const std::uint64_t seed_;
  std::uint64_t posted_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// All secrets are the same.
const FileReader& sim_secrets();

}  // namespace holdfast::simulation
