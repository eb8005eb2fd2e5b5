// The Lease of a job's heartbeat: what its holder reads of it and writes into it.
//
//   LeaseRecord record("media", "holdfast-1b4e");
//   LeaseReading reading = record.read(200, body);  // for the Guard
//   std::string body = record.renewed(renewal, wall_clock_now);
#pragma once

#include <string>

#include "agent/wire/lease_answer.h"
#include "agent/wire/lease_body.h"
#include "core/json.h"
#include "core/time.h"

namespace holdfast::agent {

void read_view(const Json& lease, LeaseView& view);

class LeaseRecord : public HeldLease<LeaseView> {
 public:
  using HeldLease::HeldLease;

  // The body of the PUT. read() must have returned a Lease before.
  std::string renewed(const Renewal& renewal, Time now);
  // The checkpoint in the Lease as it was read last; empty: none.
  std::string checkpoint() const;
};

}  // namespace holdfast::agent
