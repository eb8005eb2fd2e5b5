// The answer of /debug/ownership: who works on which shard, and why.
#pragma once

#include <string>

#include "operator/membership/membership.h"

namespace holdfast::runtime {

std::string ownership_json(const membership::OwnershipReport& report);

}  // namespace holdfast::runtime
