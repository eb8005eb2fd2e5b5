// Checks the batch/v1 Jobs that Holdfast runs, after every write. A part of the Ledger. The rules:
// - A Job ends once, and as the DurableJob of its record has ended.
// - A DurableJob that somebody has deleted ends its Job only once it is gone.
// - Two DurableJobs of one Job never have runs at the same time.
// - A replica deletes a DurableJob only if its Job does not name it.
// - A DurableJob that has ended keeps its outbox until its targets have the events. After its
//   deletion it keeps it for an hour at most, or for a minute in a namespace that goes.
// Liveness checks all that has to happen in time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "tests/simulation/gateway.h"

namespace holdfast::simulation {

class LaneLedger {
 public:
  using Complain = std::function<void(const std::string&)>;
  LaneLedger(Gateway& gateway, Complain complain)
      : gateway_(gateway), complain_(std::move(complain)) {}

  void job_written(const Applied& applied);
  void durable_job_written(const Applied& applied);

  // The UID of the Job that owns or owned this DurableJob. Empty: none.
  std::string owner_of(const std::string& durable_uid) const;
  // reconciler::shard_key() of this DurableJob, if its shard is fixed; else the UID.
  std::string shard_key(const std::string& durable_uid) const;
  // The same of all DurableJobs that this one's Job owns or owned, and that Job's UID.
  std::vector<std::string> shard_keys_of_job(const std::string& durable_uid) const;
  // A replica may delete this DurableJob.
  bool is_stray(const Json& durable) const;

 private:
  struct Durable {
    std::string owner;  // UID of the Job
    std::string name, phase;
    bool runs = false;
    bool gone = false;
  };
  void check_outbox(const Json& before, const Json* after) const;
  void check_outcome(const Json& job, const std::string& outcome);
  void check_alone(const Durable& one, const std::string& uid) const;

  Gateway& gateway_;
  const Complain complain_;
  std::map<std::string, std::string> outcomes_;  // by the Job's UID
  std::map<std::string, Durable> durable_;       // by UID: those that a Job owns or owned
  std::map<std::string, std::string> fixed_;     // by UID: the key of a shard that is fixed
};

// "Complete" or "Failed"; empty: the Job has not ended.
std::string outcome_of(const Json& job);
// By its condition.
std::optional<Time> ended_at(const Json& job);
// The name and UID of the DurableJob that the Job names; empty: none.
std::string recorded_name(const Json& job);
std::string recorded_uid(const Json& job);

}  // namespace holdfast::simulation
