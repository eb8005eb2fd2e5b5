#include "tests/simulation/others.h"

#include <algorithm>
#include <vector>

#include "reconciler/rescue/rescue.h"
#include "tests/simulation/acts.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/users.h"

namespace holdfast::simulation {
namespace {

using std::chrono::seconds;

constexpr const char* kOtherUser = "other-controller";
constexpr const char* kOtherLabel = "simulation/other";
constexpr const char* kJobs = "/apis/batch/v1/namespaces/";
constexpr int kPodsOfEach = 2;

struct Other {
  const char* name;
  bool has_label = true;
  bool has_controller = true;
  bool has_claim = false;
  const char* window = "";
  const char* frees_claims = "";
};
constexpr Other kOthers[] = {
    {"plain"},
    {.name = "hasty", .window = "20"},
    {.name = "unlabelled", .has_label = false},
    {.name = "bare", .has_controller = false},
    {.name = "claim", .has_claim = true},
    {.name = "allowed-claim", .has_claim = true, .window = "30", .frees_claims = "true"},
    {.name = "malformed", .window = "soon"},
};

std::string home() { return kNamespaces[0]; }

std::string annotation(const Json& pod, const char* name) {
  return string_at(at(at(pod, "metadata"), "annotations"), name);
}

}  // namespace

bool is_of_others(const Json& pod) {
  return at(at(at(pod, "metadata"), "labels"), kOtherLabel).is_string();
}

bool may_be_rescued(const Json& pod) {
  const Json& labels = at(at(pod, "metadata"), "labels");
  const bool has_claim = !at(at(pod, "spec"), "volumes").empty();
  return string_at(labels, reconciler::kRescueLabel) == "true" && !controller_uid(pod).empty() &&
         (!has_claim || annotation(pod, reconciler::kRescueVolumesAnnotation) == "true") &&
         annotation(pod, reconciler::kLostAfterAnnotation) != "soon";
}

Duration rescue_window_of(const Json& pod) {
  const std::string text = annotation(pod, reconciler::kLostAfterAnnotation);
  return seconds(text.empty() ? 60 : std::stoll(text));
}

bool is_freed(const Json& pod) {
  for (const Json& condition : at(at(pod, "status"), "conditions")) {
    if (string_at(condition, "reason") == reconciler::kFreedReason) return true;
  }
  return false;
}

void OtherControllers::start(std::uint64_t seed, std::set<std::string> kinds) {
  seed_ = seed;
  kinds_ = std::move(kinds);
  for (const Other& other : kOthers) {
    if (!other.has_controller) continue;
    const Json pod = {{"spec",
                       {{"restartPolicy", "Never"},
                        {"containers", Json::array({{{"name", "main"}, {"image", "work"}}})}}}};
    gateway_.ask(kOtherUser, "POST", kJobs + home() + "/jobs",
                 {{"apiVersion", "batch/v1"},
                  {"kind", "Job"},
                  {"metadata", {{"name", other.name}, {"namespace", home()}}},
                  {"spec", {{"template", pod}}}});
  }
  look();
}

void OtherControllers::look() {
  scheduler_.after(seconds(1), [this] { look(); });
  if (gateway_.in_trouble()) return;
  for (std::size_t i = 0; i < std::size(kOthers); ++i) tend(static_cast<int>(i));
}

void OtherControllers::tend(int controller) {
  const std::string name = kOthers[controller].name;
  if (!kinds_.empty() && !kinds_.contains(name)) return;
  std::vector<Json> ended;
  int live = 0;
  gateway_.server().for_each("pods", [&](const Json& pod) {
    if (string_at(at(at(pod, "metadata"), "labels"), kOtherLabel) != name) return;
    if (is_final(pod_phase(pod))) {
      ended.push_back(pod);
    } else {
      ++live;
    }
  });
  for (const Json& pod : ended) {
    if (is_deleting(pod)) continue;
    gateway_.ask(kOtherUser, "DELETE", pod_target(home(), string_at(at(pod, "metadata"), "name")),
                 {{"preconditions", {{"uid", uid_of(pod)}}}});
  }
  for (; live < kPodsOfEach; ++live) {
    create_pod(controller, name + "-" + std::to_string(made_++));
  }
}

void OtherControllers::create_pod(int controller, const std::string& name) {
  const Other& other = kOthers[controller];
  const std::uint64_t plan = mix(seed_, made_);
  Json meta = {{"name", name},
               {"namespace", home()},
               {"labels", {{kOtherLabel, other.name}}},
               {"annotations", {{kPlanAnnotation, std::to_string(plan)}}}};
  if (other.has_label) meta["labels"][reconciler::kRescueLabel] = "true";
  if (*other.window) meta["annotations"][reconciler::kLostAfterAnnotation] = other.window;
  if (*other.frees_claims) {
    meta["annotations"][reconciler::kRescueVolumesAnnotation] = other.frees_claims;
  }
  if (other.has_controller) {
    const Json* const job = gateway_.server().find("jobs", home(), other.name);
    if (!job) return;
    meta["ownerReferences"] = Json::array({{{"apiVersion", "batch/v1"},
                                            {"kind", "Job"},
                                            {"name", other.name},
                                            {"uid", uid_of(*job)},
                                            {"controller", true}}});
  }
  Json spec = {{"restartPolicy", "Never"},
               {"containers", Json::array({{{"name", "main"}, {"image", "work"}}})}};
  if (other.has_claim) {
    spec["volumes"] =
        Json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}});
  }
  gateway_.ask(kOtherUser, "POST", "/api/v1/namespaces/" + home() + "/pods",
               {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", meta}, {"spec", spec}});
}

}  // namespace holdfast::simulation
