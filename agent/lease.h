// The Lease as the API server last told it, and what an answer of the API server means.
//
//   LeaseRecord record("media", "holdfast-1b4e");
//   Answer answer = record.read(200, body);          // for the Guard
//   std::string body = record.renewed(renewal, wall_clock_now);
//
// A renewal is the whole Lease as it was read, its UID and resourceVersion included, with nothing
// changed but what a worker may change: whoever wrote to it meanwhile, or made it anew, wins.
#pragma once

#include <string>
#include <string_view>

#include "agent/guard.h"
#include "core/json.h"
#include "core/time.h"

namespace holdfast::agent {

// Of a progress message.
inline constexpr std::size_t kMaxMessageBytes = 256;

class LeaseRecord {
 public:
  LeaseRecord(std::string lease_namespace, std::string name);

  // Keeps the Lease of a 200.
  Answer read(int status, std::string_view body);
  // The same of the answer to the last renewal. One of another time acknowledges nothing.
  Answer read_renewal(int status, std::string_view body);
  // The body of the PUT; read() has returned a Lease before.
  std::string renewed(const Renewal& renewal, Time now);
  // "/apis/...": where it is read and written.
  const std::string& path() const { return path_; }

 private:
  const std::string name_;
  const std::string path_;
  Json lease_;
  std::string renew_time_;  // of the last renewal
};

}  // namespace holdfast::agent
