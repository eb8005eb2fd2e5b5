// Checks the batch/v1 Jobs that Holdfast runs, after every write. A part of the Ledger. The rules:
// - A Job ends once, and as the DurableJob of its record has ended.
// - A DurableJob that somebody has deleted ends its Job only once it is gone.
// - Never do two DurableJobs of one Job have runs at a time.
// - A replica deletes a DurableJob only if its Job does not name it.
// What has to happen in time is Liveness's.
#pragma once

#include <functional>
#include <map>
#include <string>

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
  // A replica may delete this DurableJob.
  bool is_stray(const Json& durable) const;

 private:
  struct Durable {
    std::string owner;  // UID of the Job
    std::string name, phase;
    bool runs = false;
    bool gone = false;
  };
  void check_outcome(const Json& job, const std::string& outcome);
  void check_alone(const Durable& one, const std::string& uid) const;

  Gateway& gateway_;
  const Complain complain_;
  std::map<std::string, std::string> outcomes_;  // by the Job's UID
  std::map<std::string, Durable> durable_;       // by UID: those that a Job owns or owned
};

// "Complete" or "Failed"; empty: the Job has not ended.
std::string outcome_of(const Json& job);
// The name and UID of the DurableJob that the Job names; empty: none.
std::string recorded_name(const Json& job);
std::string recorded_uid(const Json& job);

}  // namespace holdfast::simulation
