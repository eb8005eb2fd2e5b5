// This replica's own member Lease on the API server, and how long the claim by it lasts. Each
// request is one step; member.h decides when to take which. Loop only.
//
// The age of the claim counts from when the last acknowledged renewal was SENT. After the renew
// deadline the replica may do nothing.
#pragma once

#include <string>

#include "core/random.h"
#include "operator/membership/lease_requests.h"

namespace holdfast::membership {

class MemberLease {
 public:
  MemberLease(LeaseRequests& requests, Random& random);

  // The name of the Lease's holder: no other member has ever had it.
  const std::string& name() const { return name_; }
  // We know of our Lease on the API server.
  bool exists() const { return !uid_.empty(); }
  // Why we step aside, in the last acknowledged renewal.
  const std::string& steps_aside() const { return steps_aside_; }

  // The result of a step. `sent`: when the request of the last try was sent.
  struct Step {
    enum class Result { kAcknowledged, kReread, kGone };
    Result result;
    SteadyTime sent;
  };
  // An error: the next step is the same. kReread: the answer to an earlier step was lost, or
  // somebody wrote the Lease. Renew it. kGone: somebody deleted it. Call abandon().
  Task<Result<Step>> create();
  Task<Result<Step>> renew(std::string steps_aside);
  Task<void> remove();
  // Goes on as a new member, under a new name.
  void abandon();

  // The renewal that was sent then is acknowledged.
  void confirm(SteadyTime sent);
  // A renewal was acknowledged at some time, under any name.
  bool was_confirmed() const { return was_confirmed_; }
  // Of the claim; zero: without a claim.
  Duration age() const { return is_claimed() ? loop_.now() - renewed_at_ : Duration::zero(); }
  SteadyTime deadline() const { return renewed_at_ + timings_.renew_deadline; }
  // Until the deadline; zero or less: it has passed, or there is no claim.
  Duration time_left() const;
  // The options of a request that must end within our claim.
  kube::CallOptions within_time() const;

 private:
  bool is_claimed() const { return renewed_at_ != SteadyTime{}; }
  std::string new_name();
  void note(const JsonView& lease);
  Task<Result<Step>> reread(SteadyTime sent);
  void note_aside(const std::string& why);

  LeaseRequests& requests_;
  Loop& loop_;
  Random& random_;
  const Log& log_;
  const reconciler::MemberTimings& timings_;

  std::string name_;  // "<id>-<random>"
  std::string uid_;   // empty: none
  std::uint64_t version_ = 0;
  std::string steps_aside_;
  SteadyTime renewed_at_{};  // when the last acknowledged renewal was sent
  bool was_confirmed_ = false;
};

}  // namespace holdfast::membership
