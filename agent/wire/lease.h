// The Lease in the API server's last answer, and the meaning of its answers.
//
//   LeaseRecord record("media", "holdfast-1b4e");
//   Answer answer = record.read(200, body);          // for the Guard
//   std::string body = record.renewed(renewal, wall_clock_now);
//
// A renewal is the whole Lease as it was read, with its UID and resourceVersion. It changes only
// the fields that a worker may change. So it fails if somebody has written the Lease meanwhile or
// created it again.
#pragma once

#include <string>
#include <string_view>

#include "agent/wire/lease_answer.h"
#include "core/json.h"
#include "core/time.h"

namespace holdfast::agent {

class LeaseRecord {
 public:
  LeaseRecord(std::string lease_namespace, std::string name);

  // Keeps the Lease of a 200.
  Answer read(int status, std::string_view body);
  // The same for the answer to the last renewal. A Lease with another renew time acknowledges
  // nothing.
  Answer read_renewal(int status, std::string_view body);
  // The body of the PUT. read() must have returned a Lease before.
  std::string renewed(const Renewal& renewal, Time now);
  // The checkpoint in the Lease as it was read last; empty: none.
  std::string checkpoint() const;
  // The Lease's path at the API server ("/apis/...").
  const std::string& path() const { return path_; }

 private:
  const std::string name_;
  const std::string path_;
  Json lease_;
  std::string renew_time_;  // of the last renewal
};

}  // namespace holdfast::agent
