#include "plugin/base/replica.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "plugin/base/job_text.h"
#include "plugin/base/rank.h"

namespace holdfast::plugin {

bool is_replica(const Json& lease) {
  return string_at(at(at(lease, "metadata"), "labels"), "holdfast.dev/lease") == "member";
}

bool replica_lives(const Json& lease, Time now) {
  const Json& spec = at(lease, "spec");
  const auto renewed = moment_at(spec, "renewTime");
  const std::chrono::seconds duration{
      std::clamp<std::int64_t>(int_at(spec, "leaseDurationSeconds", 15), 1, 3600)};
  return renewed && !string_at(spec, "holderIdentity").empty() &&
         now - *renewed <= duration + kGrace;
}

int shards_of(const Json& lease) {
  const std::string text =
      string_at(at(at(lease, "metadata"), "annotations"), "holdfast.dev/shards");
  const bool is_number = !text.empty() && text.size() <= 4 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::stoi(text) : 0;
}

}  // namespace holdfast::plugin
