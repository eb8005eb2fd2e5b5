// Leases in the API server's answers, and what its refusals mean.
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"

namespace holdfast::agent {

// The Lease's path at the API server ("/apis/...").
std::string lease_path(const std::string& lease_namespace, const std::string& name);

// The whole Lease with all annotations, because a renewal removes the fields that it leaves out.
// Null if the text is anything else than a Lease of this name.
Json parse_lease(std::string_view text, std::string_view name);
// The same of a parsed object.
Json as_lease(Json object, std::string_view name);

// The Lease is the answer to the renewal that was sent with this renewTime. If not, it acknowledges
// nothing, and kOtherRenewal says so.
bool acknowledges(const Json& lease, std::string_view renew_time);
inline constexpr const char* kOtherRenewal = "the API server answered with another renewal's Lease";

// An answer other than 200.
struct LeaseRefusal {
  enum class Kind {
    kConflict,  // somebody else has written the Lease since it was read
    kGone,      // there is no such Lease
    kFenced,    // refused by the fence in the API server
    kNone,      // no verdict, try again
  };
  Kind kind = Kind::kNone;
  std::string why;  // for humans
};
LeaseRefusal read_refusal(std::string_view name, int status, std::string_view body);

}  // namespace holdfast::agent
