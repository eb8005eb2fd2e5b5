// What /debug/ownership answers: who works on which shard, and why.
#pragma once

#include <string>

#include "operator/controller/membership.h"

namespace holdfast::runtime {

std::string ownership_json(const controller::OwnershipReport& report);

}  // namespace holdfast::runtime
