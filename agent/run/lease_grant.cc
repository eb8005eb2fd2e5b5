#include "agent/run/lease_grant.h"

namespace holdfast::agent {

std::string LeaseGrant::numbers(const LeaseView& lease) const {
  return "attempt " + std::to_string(lease.attempt) + "'s; this is attempt " +
         std::to_string(attempt_);
}

std::string LeaseGrant::not_yet(const LeaseView& lease) const {
  if (lease.attempt < attempt_) return "it is still " + numbers(lease);
  if (lease.holder == holder_) return "";
  return lease.holder.empty() ? "it is not given to this pod yet" : "it is " + lease.holder + "'s";
}

std::string LeaseGrant::lost(const LeaseView& lease) const {
  if (!uid_.empty() && !is_named(lease)) return "the Lease was deleted and created again";
  if (lease.attempt != attempt_) return "the Lease is " + numbers(lease);
  if (lease.holder == holder_) return "";
  return lease.holder.empty() ? "the Lease was taken from this pod"
                              : "the Lease is " + lease.holder + "'s";
}

}  // namespace holdfast::agent
