// Leases in the API server's answers, and what its refusals mean.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "agent/wire/lease_answer.h"
#include "core/json.h"
#include "core/time.h"

namespace holdfast::agent {

// The Lease's path at the API server ("/apis/...").
std::string lease_path(const std::string& lease_namespace, const std::string& name);

// The Lease of this name as a parsed object; null: it is anything else. With all annotations,
// because a renewal removes the fields that it leaves out.
Json as_lease(Json object, std::string_view name);
// The Lease of this name in an answer.
std::variant<Json, LeaseRefusal> read_lease(std::string_view name, int status,
                                            std::string_view body);

// Of an answer that is anything else.
LeaseRefusal no_lease();

std::string annotation(const Json& lease, const char* key);

// The Lease that the agent renews, as the API server's last answer has it. `View`: what a reader
// gets of it, made by read_view(const Json&, View&).
//
// A renewal is the whole Lease as it was read, with its UID and resourceVersion. It changes only
// the fields that a worker may change. So it fails if somebody has written the Lease meanwhile or
// created it again.
template <class View>
class HeldLease {
 public:
  using Reading = std::variant<View, LeaseRefusal>;

  HeldLease(const std::string& lease_namespace, std::string name)
      : name_(std::move(name)), path_(lease_path(lease_namespace, name_)) {}

  const std::string& path() const { return path_; }

  // Keeps the Lease of a 200.
  Reading read(int status, std::string_view body) {
    auto answer = read_lease(name_, status, body);
    if (auto* const refusal = std::get_if<LeaseRefusal>(&answer)) return std::move(*refusal);
    lease_ = std::get<Json>(std::move(answer));
    View view;
    read_view(lease_, view);
    return view;
  }
  // The same for the answer to the last renewal. A Lease with another renew time acknowledges
  // nothing.
  Reading read_renewal(int status, std::string_view body) {
    Json before = lease_;
    Reading reading = read(status, body);
    const bool is_lease = std::holds_alternative<View>(reading);
    if (is_lease && string_at(at(lease_, "spec"), "renewTime") != renew_time_) {
      lease_ = std::move(before);
      return LeaseRefusal{.why = "the API server answered with another renewal's Lease"};
    }
    return reading;
  }

 protected:
  const Json& lease() const { return lease_; }
  // The body of the PUT. read() must have returned a Lease before. `annotate` changes annotations.
  template <class Annotate>
  std::string renewed_with(Time now, Annotate annotate) {
    Json lease = lease_;
    renew_time_ = format_time_micros(now);
    lease["spec"]["renewTime"] = renew_time_;
    Json& annotations = lease["metadata"]["annotations"];
    if (!annotations.is_object()) annotations = Json::object();
    annotate(annotations);
    return lease.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  const std::string name_;
  const std::string path_;
  Json lease_;
  std::string renew_time_;  // of the last renewal
};

}  // namespace holdfast::agent
