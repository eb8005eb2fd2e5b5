// Users of warm workers: their pools, the jobs in them, and what administrators do to Leases.
#include <utility>

#include "core/worker_protocol.h"
#include "reconciler/names.h"
#include "tests/simulation/draw.h"
#include "tests/simulation/users.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;

constexpr const char* kMerge = "application/merge-patch+json";
constexpr int kPoolsOfNamespace = 2;
constexpr milliseconds kTouch{250};

std::string pool_name(int number) { return "pool-" + std::to_string(number); }

std::string lease_target(const Json& lease) {
  const Json& meta = at(lease, "metadata");
  return "/apis/coordination.k8s.io/v1/namespaces/" + string_at(meta, "namespace") + "/leases/" +
         string_at(meta, "name");
}

bool is_worker_lease(const Json& lease) {
  return string_at(at(lease, "metadata"), "name").starts_with("holdfast-work");
}

}  // namespace

std::string pool_target(const std::string& namespace_, const std::string& name) {
  return "/apis/holdfast.dev/v1alpha1/namespaces/" + namespace_ + "/workerpools" +
         (name.empty() ? "" : "/" + name);
}

// Small, so that jobs wait, and with short times.
Json drawn_pool(std::uint64_t seed, const Json& over) {
  Draw draw(seed);
  const int most = draw.between(1, 4);
  const Json container = {{"name", "main"},
                          {"image", "worker-" + std::to_string(draw.between(0, 3))},
                          {"command", {"/work"}}};
  Json spec = {{"template",
                {{"spec",
                  {{"containers", Json::array({container})},
                   {"terminationGracePeriodSeconds", draw.between(10, 30)}}}}},
               {"minWorkers", draw.between(0, most)},
               {"maxWorkers", most},
               {"slotsPerWorker", draw.between(1, 3)},
               {"idleSeconds", draw.between(2, 30)},
               {"leaseDurationSeconds", draw.between(5, 20)},
               {"stopGraceSeconds", draw.between(1, 15)},
               {"startDeadlineSeconds", draw.between(120, 600)}};
  spec.merge_patch(over);
  return spec;
}

bool Users::create_pool(const std::string& ns, const std::string& name, const Json& spec) {
  const auto answer = gateway_.ask(kUser, "POST", pool_target(ns),
                                   {{"apiVersion", "holdfast.dev/v1alpha1"},
                                    {"kind", "WorkerPool"},
                                    {"metadata", {{"name", name}, {"labels", {{"team", ns}}}}},
                                    {"spec", spec}});
  return answer && answer->status == 201;
}

bool Users::patch_pool(const std::string& ns, const std::string& name, const Json& spec) {
  const auto answer = gateway_.ask(kUser, "PATCH", pool_target(ns, name), {{"spec", spec}}, kMerge);
  return answer && answer->status == 200;
}

bool Users::delete_pool(const std::string& ns, const std::string& name) {
  const auto answer = gateway_.ask(kUser, "DELETE", pool_target(ns, name));
  return answer && answer->status == 200;
}

void Users::ensure_pools() {
  for (const char* ns : kNamespaces) {
    for (int number = 0; number < kPoolsOfNamespace; ++number) {
      const std::string name = pool_name(number);
      const std::string key = std::string(ns) + "/" + name;
      if (pools_away_.count(key) > 0 || gateway_.server().find("workerpools", ns, name)) continue;
      create_pool(ns, name, drawn_pool(reconciler::hash64(key)));
    }
  }
}

namespace {

// What only a pod has goes, and the plan of its worker is the payload.
void move_to_pool(std::uint64_t seed, Json& part) {
  Draw draw(seed);
  part["payload"] =
      string_at(at(at(at(part, "template"), "metadata"), "annotations"), kPlanAnnotation, "0");
  for (const char* field : {"template", "scheduleDeadlineSeconds", "podReplacementPolicy"}) {
    part.erase(field);
  }
  part.erase("heartbeat");
  if (draw.percent(40)) part["heartbeat"] = {{"progressDeadlineSeconds", draw.between(5, 25)}};
  part["workerPool"] = {{"name", pool_name(draw.between(0, kPoolsOfNamespace - 1))}};
  if (draw.percent(40)) part["workerPool"]["key"] = "key-" + std::to_string(draw.between(0, 2));
  // How long a worker may take to begin it.
  part["startDeadlineSeconds"] = draw.between(60, 120);
}

}  // namespace

void Users::draw_pool(std::uint64_t seed, Json& spec) const {
  Draw draw(seed);
  if (draw.percent(85)) move_to_pool(mix(seed, 1), spec);
  if (!spec.contains("stages")) return;
  std::uint64_t number = 1;
  for (Json& stage : spec["stages"]) {
    if (draw.percent(70)) move_to_pool(mix(seed, ++number), stage);
  }
}

bool Users::act_on_pool(const ScriptEvent& event) {
  const std::string ns = kNamespaces[mix(event.seed, 22) % 2];
  const std::string name = pool_name(static_cast<int>(mix(event.seed, 23) % kPoolsOfNamespace));
  if (event.act == Act::kRecreatePool) {
    if (!delete_pool(ns, name)) return false;
    pools_away_.insert(ns + "/" + name);
    return true;
  }
  const Json drawn = drawn_pool(mix(event.seed, 24));
  Json spec = {{"minWorkers", drawn["minWorkers"]},
               {"maxWorkers", drawn["maxWorkers"]},
               {"idleSeconds", drawn["idleSeconds"]}};
  if (event.seed % 3 == 0) spec["slotsPerWorker"] = drawn["slotsPerWorker"];
  if (event.seed % 4 == 0) spec["leaseDurationSeconds"] = drawn["leaseDurationSeconds"];
  if (event.seed % 5 == 0) spec["template"] = drawn["template"];
  return patch_pool(ns, name, spec);
}

// An administrator may; the fence keeps all others away. Or the label goes, by which the operator
// watches.
bool Users::delete_worker_lease(std::uint64_t seed) {
  std::vector<std::string> targets;
  gateway_.server().for_each("leases", [&](const Json& lease) {
    if (is_worker_lease(lease)) targets.push_back(lease_target(lease));
  });
  if (targets.empty()) return false;
  const std::string& target = targets[mix(seed, 25) % targets.size()];
  const auto answer =
      mix(seed, 26) % 4 > 0
          ? gateway_.ask(kUser, "DELETE", target)
          : gateway_.ask(kUser, "PATCH", target,
                         {{"metadata", {{"labels", {{"holdfast.dev/worker-pool", nullptr}}}}}},
                         kMerge);
  return answer && answer->status / 100 == 2;
}

// Nobody gives a worker its Lease back.
bool Users::edit_holder(std::uint64_t seed) {
  std::vector<Json> leases;
  gateway_.server().for_each("leases", [&](const Json& lease) {
    const std::string name = string_at(at(lease, "metadata"), "name");
    const std::string holder = string_at(at(lease, "spec"), "holderIdentity");
    if (name.starts_with("holdfast-worker-") && !holder.empty()) leases.push_back(lease);
  });
  if (leases.empty()) return false;
  const Json& lease = leases[mix(seed, 27) % leases.size()];
  const Json holders[] = {nullptr, "revoked", "somebody/else", "nobody"};
  const Json& holder = holders[mix(seed, 28) % 4];
  const auto answer = gateway_.ask(kUser, "PATCH", lease_target(lease),
                                   {{"spec", {{"holderIdentity", holder}}}}, kMerge);
  return answer && answer->status == 200;
}

// Without raising the seq: who raises it gives orders as the operator does.
bool Users::edit_work(std::uint64_t seed) {
  std::vector<Json> leases;
  gateway_.server().for_each("leases", [&](const Json& lease) {
    const std::string name = string_at(at(lease, "metadata"), "name");
    if (name.starts_with("holdfast-work-")) leases.push_back(lease);
  });
  if (leases.empty()) return false;
  const Json& lease = leases[mix(seed, 29) % leases.size()];
  const auto read =
      decode_work(string_at(at(at(lease, "metadata"), "annotations"), kWorkAnnotation));
  holdfast::Work work = read.ok() ? *read : holdfast::Work();
  Json words = nullptr;
  const std::uint64_t how = mix(seed, 30) % 6;
  if (how == 1) words = "{\"seq\": tr";
  if (how == 2) work.seq /= 2;
  if (how == 3) work.draining = !work.draining;
  if (how == 4) work.entries.push_back({{"no-such-job", 0, 1}, "no-such-job"});
  if (how == 5 && !work.entries.empty()) work.entries.back().stop = true;
  if (how >= 2) words = encode_work(work);
  const auto answer =
      gateway_.ask(kUser, "PATCH", lease_target(lease),
                   {{"metadata", {{"annotations", {{kWorkAnnotation, words}}}}}}, kMerge);
  return answer && answer->status == 200;
}

// All others conflict with these writes.
void Users::touch_leases(std::uint64_t number) {
  if (!touches_) return;
  std::vector<std::string> targets;
  gateway_.server().for_each("leases", [&](const Json& lease) {
    if (is_worker_lease(lease)) targets.push_back(lease_target(lease));
  });
  for (const std::string& target : targets) {
    if (mix(number, reconciler::hash64(target)) % 3 > 0) continue;
    gateway_.ask(kUser, "PATCH", target,
                 {{"metadata", {{"annotations", {{"touched", std::to_string(number)}}}}}}, kMerge);
  }
  later(kTouch, [this, number] { touch_leases(number + 1); });
}

}  // namespace holdfast::simulation
