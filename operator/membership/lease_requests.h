// The requests for the Leases of this installation: their paths, what each write has in common, and
// the API server's Retry-After. Errors are those of kube::Client. Loop only.
//
// Retry-After counts for all Leases but our own member Lease, which has a pause of its own
// (member.h). While it lasts, the replica still works on its jobs. That is safe: an overloaded
// server has asked for fewer requests, and more of them would get the same answer.
#pragma once

#include <string>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/task.h"
#include "operator/membership/lease_codec.h"
#include "reconciler/shards.h"

namespace holdfast::membership {

struct MembershipConfig {
  std::string namespace_ = "holdfast-system";
  std::string id = "holdfast-operator";
  int shards = 32;
  reconciler::MemberTimings timings;
};

class LeaseRequests {
 public:
  LeaseRequests(kube::Client& client, MembershipConfig config, Log log);

  const MembershipConfig& config() const { return config_; }
  Loop& loop() const { return client_.loop(); }
  const Log& log() const { return log_; }
  // A Lease's key in the cache.
  std::string key(const std::string& name) const { return config_.namespace_ + "/" + name; }

  // What all writes have in common. Empty `holder`: nobody.
  LeaseWrite write(const std::string& holder) const;
  // The same for a write that replaces `before`.
  LeaseWrite write(const std::string& holder, const kube::Object& before) const;

  using Answer = Result<JsonDocument>;
  Task<Answer> get(const std::string& name, const kube::CallOptions& options = {});
  Task<Answer> create(std::string body, const kube::CallOptions& options = {});
  Task<Answer> replace(const std::string& name, std::string body, const kube::CallOptions& options);
  // Only the Lease with this UID, and in this version if it is not 0.
  Task<Answer> remove(const std::string& name, const std::string& uid, std::uint64_t version,
                      const kube::CallOptions& options);

  // Obeys the Retry-After of an answer.
  void heed(const Answer& answer);
  bool must_wait() const;

  // Logs a trouble, once until another one or trouble_over(). A cancelled request is no trouble.
  void report(const char* what, const std::string& member, const Error& error);
  void trouble_over() { last_trouble_.clear(); }

 private:
  std::string path(const std::string& name) const;

  kube::Client& client_;
  const MembershipConfig config_;
  Log log_;
  SteadyTime not_before_{};
  std::string last_trouble_;
};

}  // namespace holdfast::membership
