#include "tests/simulation/guard_policies.h"

#include "core/json.h"
#include "operator/codecs/guard_policies.h"
#include "operator/observe/guard.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

using observe::Guard;
using std::chrono::seconds;

const char* const kGroupPath = "/apis/admissionregistration.k8s.io/v1/";

// What a replica knows may be as old as Guard says, by a clock that is a tenth too slow. A request
// may be under way a while longer.
constexpr Duration unknown_after(Duration oldest) {
  return (oldest + Guard::kLook + 4 * Guard::kLimit) * 11 / 10 + seconds(35);
}

std::string body_of(const codecs::GuardObject& object) {
  const bool binds = std::string_view(object.resource) == "validatingadmissionpolicybindings";
  return Json{{"apiVersion", "admissionregistration.k8s.io/v1"},
              {"kind", binds ? "ValidatingAdmissionPolicyBinding" : "ValidatingAdmissionPolicy"},
              {"metadata", {{"name", object.name}}},
              {"spec", *parse_json(object.spec)}}
      .dump();
}

}  // namespace

void GuardPolicies::send(const char* method, const std::string& target, const std::string& body,
                         const char* content_type) {
  ApiRequest request;
  request.user = "admin";
  request.method = method;
  request.target = kGroupPath + target;
  request.content_type = content_type;
  request.body = body;
  (void)server_.handle(request);
}

void GuardPolicies::install(bool is_readable) {
  installed_ = true;
  unknown_ = unknown_after(is_readable ? Duration::zero() : Duration(Guard::kStale));
  create_all();
}

void GuardPolicies::create_all() {
  for (const codecs::GuardObject& object : codecs::guard_objects()) {
    send("POST", object.resource, body_of(object));
  }
}

void GuardPolicies::spoil(std::uint64_t seed) {
  const auto objects = codecs::guard_objects();
  const codecs::GuardObject& object = objects[seed % objects.size()];
  const std::string target = std::string(object.resource) + "/" + object.name;
  if (seed / objects.size() % 2 == 0) {
    send("DELETE", target, "");
  } else {
    send("PATCH", target,
         R"({"spec":{"failurePolicy":"Ignore","validationActions":["Audit"],"policyName":"x"}})",
         "application/merge-patch+json");
  }
  if (!missing_since_) missing_since_ = scheduler_.now();
}

void GuardPolicies::restore() {
  if (!missing_since_) return;
  for (const codecs::GuardObject& object : codecs::guard_objects()) {
    send("DELETE", std::string(object.resource) + "/" + object.name, "");
  }
  create_all();
  missing_since_.reset();
}

void GuardPolicies::applied(const Applied& write) {
  if (write.resource != "durablejobs" || !write.after || !missing_since_) return;
  const auto attempt = [](const Json& job) { return int_at(at(job, "status"), "attempt"); };
  const std::int64_t before = write.before ? attempt(*write.before) : 0;
  if (attempt(*write.after) <= before) return;
  const Duration missing = scheduler_.now() - *missing_since_;
  if (missing <= unknown_) return;
  complain_("S27 Guarded: " + key_of(*write.after) + " begins attempt " +
            std::to_string(attempt(*write.after)) +
            " although a policy of the guard has been missing for " + human_duration(missing));
}

}  // namespace holdfast::simulation
