#include "operator/runtime/ownership_json.h"

#include "core/json.h"

namespace holdfast::runtime {

std::string ownership_json(const membership::OwnershipReport& report) {
  using Ordered = nlohmann::ordered_json;
  Ordered members = Ordered::array();
  for (const auto& member : report.members) {
    members.push_back({{"name", member.name},
                       {"alive", member.alive},
                       {"stepsAside", member.steps_aside},
                       {"silentSeconds", to_seconds(member.silent)}});
  }
  Ordered shards = Ordered::array();
  int number = 0;
  for (const auto& shard : report.shards) {
    shards.push_back({{"shard", number++},
                      {"holder", shard.holder},
                      {"planned", shard.planned},
                      {"held", shard.held},
                      {"why", shard.why}});
  }
  const Ordered body = {{"member", report.self},
                        {"state", to_string(report.state)},
                        {"renewalAgeSeconds", to_seconds(report.renewal_age)},
                        {"renewDeadlineSeconds", to_seconds(report.renew_deadline)},
                        {"members", std::move(members)},
                        {"shards", std::move(shards)}};
  return body.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace holdfast::runtime
