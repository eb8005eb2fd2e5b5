// For /debug/ownership and metrics: who owns what, and why.
#pragma once

#include <string>
#include <vector>

#include "core/time.h"

namespace holdfast::membership {

// kStarting: before join(). kReading: it reads everything again after a lapse.
enum class MembershipState { kStarting, kJoining, kActing, kReading, kLapsed, kLeaving };
const char* to_string(MembershipState state);

struct OwnershipReport {
  struct Member {
    std::string name;
    bool alive = false;
    std::string steps_aside;  // why; empty: it does not
    Duration silent{0};       // since its Lease last changed; counts live time only
  };
  struct Shard {
    std::string holder;
    std::string planned;
    bool held = false;
    std::string why;
  };
  std::string self;
  MembershipState state = MembershipState::kStarting;
  Duration renewal_age{0};
  Duration renew_deadline{0};
  std::vector<Member> members;
  std::vector<Shard> shards;
};

}  // namespace holdfast::membership
