// The visitors name each field of the CRDs, and each member of their structs.
#include "api/fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "agent/base/progress.h"
#include "api/json_in.h"
#include "api/json_out.h"
#include "api/pool.h"
#include "api/queue.h"
#include "api/spec.h"
#include "api/status.h"
#include "client/kube/yaml.h"
#include "core/agent_protocol.h"
#include "reconciler/job/status_limits.h"
#include "tests/support/json_document.h"

namespace holdfast::api {
namespace {

using Names = std::set<std::string>;

// The parts of the CRDs: "durablejobs.spec".
const Json& schema_of(const std::string& part) {
  static std::map<std::string, Json> known;
  const std::string plural = part.substr(0, part.find('.'));
  if (known[plural].is_null()) {
    std::ifstream file(CRD_FOLDER "/holdfast.dev_" + plural + ".yaml");
    std::stringstream text;
    text << file.rdbuf();
    const auto documents = kube::parse_manifest(text.str());
    EXPECT_TRUE(documents.ok()) << documents.error().message;
    known[plural] = (*documents)[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
  }
  return known[plural]["properties"][part.substr(plural.size() + 1)];
}

const Json& inside(const Json& schema) {
  return schema.contains("items") ? schema["items"] : schema;
}

// Null: the CRD has no such field.
const Json& field_of(const Json& schema, const std::string& name) {
  static const Json kNone;
  const Json& inner = inside(schema);
  const bool is_there = inner.contains("properties") && inner["properties"].contains(name);
  return is_there ? inner["properties"][name] : kNone;
}

// Of the field, of its items, or of a rule: "self <= 9", or "self.jobs <= 9" of its parent. Null:
// none.
Json bound_of(const Json& schema, const std::string& name, const std::string& keyword) {
  const Json& field = field_of(schema, name);
  if (field.is_null()) return nullptr;
  for (const Json* one : {&field, &inside(field)}) {
    if (one->contains(keyword)) return (*one)[keyword];
  }
  const std::string order = keyword == "minimum" ? " >= " : " <= ";
  for (const auto& [one, self] :
       {std::pair(&field, "self" + order), std::pair(&inside(schema), "self." + name + order)}) {
    for (const Json& rule : one->value("x-kubernetes-validations", Json::array())) {
      const std::string text = rule["rule"];
      const std::size_t at = text.find(self);
      if (at == std::string::npos) continue;
      std::int64_t bound = 0;
      if (std::istringstream(text.substr(at + self.size())) >> bound) return bound;
    }
  }
  return nullptr;
}

// What the API server sets, or what the field's description says. Null: none.
Json default_of(const Json& field) {
  if (field.is_null()) return nullptr;
  if (field.contains("default")) return field["default"];
  std::smatch found;
  const std::string text = field.value("description", "");
  if (!std::regex_search(text, found, std::regex("Default: ([^,.;]*)"))) return nullptr;
  if (found[1] == "none") return nullptr;
  const auto parsed = parse_json(found[1].str());
  return parsed.ok() ? *parsed : Json(found[1].str());
}

template <class Member>
constexpr bool kIsPlain = std::is_arithmetic_v<Member> || std::is_enum_v<Member> ||
                          std::same_as<Member, seconds> || std::same_as<Member, std::string>;

// What the visitors name, "heartbeat.leaseDurationSeconds", and how their bounds and the members'
// defaults differ from the CRD's.
struct Seen {
  Names names;
  Names differences;
};

class Looks {
 public:
  Looks(const Json& schema, std::string prefix, Seen& seen)
      : schema_(schema), prefix_(std::move(prefix)), seen_(seen) {}

  template <class Member, class... More>
  void operator()(const std::string& name, Member& member, const Rule& rule = {},
                  const More&... more) {
    other(name);
    if (rule.inside) other(name + "." + rule.inside);
    const Json& field = field_of(schema_, name);
    const std::string path = prefix_ + name + (rule.inside ? std::string(".") + rule.inside : "");
    const auto compare = [&](const auto& own, const auto& none, const std::string& keyword) {
      const Json crd =
          bound_of(rule.inside ? field : schema_, rule.inside ? rule.inside : name, keyword);
      if (own == none || crd == own) return;
      seen_.differences.insert(path + " " + keyword + ": " + Json(own).dump() +
                               ", CRD: " + crd.dump());
    };
    const Rule none;
    compare(rule.least, none.least, "minimum");
    compare(rule.most, none.most, "maximum");
    compare(rule.bytes, none.bytes, "maxLength");
    compare(rule.entries, none.entries, "maxItems");
    if constexpr (kIsPlain<Member>) {
      const Json set = default_of(field);
      Member read = set.is_null() ? Member{} : member;
      const JsonDocument object = document(Json{{name, set}});
      JsonIn in(object);
      if (!set.is_null()) in(name, read, rule, more...);
      if (is_optional(name) && read != member) seen_.differences.insert(path + " default");
    }
    look_into(rule.inside ? field_of(field, rule.inside) : field, member, path + ".");
  }
  void truth(const std::string& name, bool&, bool&, const Rule& = {}) { other(name); }
  template <class Member>
  void by_codec(const std::string& name, Member& member, const Rule& rule = {}) {
    (*this)(name, member, rule);
  }
  void other(const std::string& name) {
    EXPECT_TRUE(seen_.names.insert(prefix_ + name).second) << prefix_ + name << " has two lines";
  }
  template <class Member, class... More>
  void own(Member&, const Rule& = {}, const More&...) {}
  template <class Member>
  void all_of(Member& member) {
    fields(*this, member);
  }

 private:
  // The user may leave this field out.
  bool is_optional(const std::string& name) const {
    if (field_of(schema_, name).is_null() || prefix_.find(".spec") == std::string::npos)
      return false;
    const Json required = inside(schema_).value("required", Json::array());
    return std::find(required.begin(), required.end(), name) == required.end();
  }
  template <class Item>
  void look_into(const Json& schema, std::vector<Item>&, const std::string& prefix) {
    Item item{};
    look_into(schema, item, prefix);
  }
  template <class Value>
  void look_into(const Json& schema, std::optional<Value>&, const std::string& prefix) {
    Value value{};
    look_into(schema, value, prefix);
  }
  template <class Member>
  void look_into(const Json& schema, Member& member, const std::string& prefix) {
    if constexpr (requires(counting::Io io) { fields(io, member); }) {
      Looks inner(schema, prefix, seen_);
      fields(inner, member);
    }
  }

  const Json& schema_;
  std::string prefix_;
  Seen& seen_;
};

template <class Struct>
void look(const std::string& part, Seen& seen) {
  Struct value;
  Looks looks(schema_of(part), part + ".", seen);
  fields(looks, value);
}

Seen look_at_all() {
  Seen seen;
  look<JobSpec>("durablejobs.spec", seen);
  look<Status>("durablejobs.status", seen);
  look<QueueSpec>("jobqueues.spec", seen);
  look<QueueStatus>("jobqueues.status", seen);
  look<PoolSpec>("workerpools.spec", seen);
  look<PoolStatus>("workerpools.status", seen);
  return seen;
}

void collect(const Json& schema, const std::string& prefix, Names& names) {
  const Json& inner = inside(schema);
  if (!inner.contains("properties")) return;
  for (const auto& [name, field] : inner["properties"].items()) {
    names.insert(prefix + name);
    // Kubernetes' own, which is passed on as it is.
    if (name != "template") collect(field, prefix + name + ".", names);
  }
}

TEST(Fields, TheStructsHaveThoseOfTheirCrds) {
  Names names = look_at_all().names;
  // A stage has them from its job.
  for (const char* name : {"cancel", "suspend", "ttlSecondsAfterFinished"}) {
    EXPECT_EQ(names.erase(std::string("durablejobs.spec.stages.") + name), 1U);
  }
  Names crds;
  for (const char* part : {"durablejobs.spec", "durablejobs.status", "jobqueues.spec",
                           "jobqueues.status", "workerpools.spec", "workerpools.status"}) {
    collect(schema_of(part), std::string(part) + ".", crds);
  }
  EXPECT_EQ(names, crds);
}

// Of fields that no visitor bounds.
TEST(Fields, ConstantsAreThoseOfTheCrds) {
  const std::map<std::string, std::int64_t> constants = {
      {"durablejobs.spec.heartbeat.leaseDurationSeconds maximum", kMaxLeaseSeconds},
      {"durablejobs.spec.maxFailedIndexes maximum", kCompletionsLimit},
      {"durablejobs.spec.notify maxItems", kNotifyLimit},
      {"durablejobs.spec.notify maxLength", kTargetNameLimit},
      {"durablejobs.spec.successPolicy.rules.succeededCount maximum", kCompletionsLimit},
      {"durablejobs.status.conditions maxItems", kConditionLimit},
      {"durablejobs.status.disruptions maximum", kCountLimit},
      {"durablejobs.status.failures maximum", kCountLimit},
      {"durablejobs.status.history maxItems", kHistoryLimit},
      {"durablejobs.status.history.index maximum", kCompletionsLimit - 1},
      {"durablejobs.status.history.message maxLength", reconciler::kHistoryMessageLimit},
      {"durablejobs.status.history.progress maxLength", agent::kMaxMessageBytes},
      {"durablejobs.status.outbox maxItems", kOutboxLimit},
      {"durablejobs.status.outbox.number maximum", kCountLimit},
      {"durablejobs.status.outbox.targets maxItems", kNotifyLimit},
      {"durablejobs.status.outbox.targets maxLength", kTargetNameLimit},
      {"durablejobs.status.runs maxItems", kRunLimit},
      {"durablejobs.status.runs.checkpoint maxLength", kMaxCheckpointBytes},
      {"durablejobs.status.runs.index maximum", kCompletionsLimit - 1},
      {"durablejobs.status.runs.progress maxLength", agent::kMaxMessageBytes},
      {"durablejobs.status.stages maxItems", kStageLimit + 1},
      {"durablejobs.status.stages.message maxLength", reconciler::kStatusMessageLimit},
      {"durablejobs.status.stages.result maxLength", kResultLimit},
      {"durablejobs.status.stages.suspendedSeconds maximum", kSuspendedLimit.count()},
      {"durablejobs.status.suspendedSeconds maximum", kSuspendedLimit.count()},
      {"durablejobs.status.waiting.reason maxLength", reconciler::kStatusReasonLimit},
      {"jobqueues.status.admitting maxItems", kAdmissionLimit},
      {"jobqueues.status.conditions maxItems", kConditionLimit},
      {"jobqueues.status.head maxItems", kHeadLimit},
  };
  for (const auto& [path, constant] : constants) {
    std::istringstream names(path.substr(0, path.find(' ')));
    std::string plural, name, next;
    std::getline(names, plural, '.');
    std::getline(names, name, '.');
    const Json* schema = &schema_of(plural + "." + name);
    std::getline(names, name, '.');
    for (; std::getline(names, next, '.'); name = next) schema = &field_of(*schema, name);
    EXPECT_EQ(bound_of(*schema, name, path.substr(path.find(' ') + 1)), constant) << path;
  }
}

// A bound that is changed in one place is a new difference.
TEST(Fields, BoundsAndDefaultsAreThoseOfTheCrdsButForThese) {
  Names known = {
      "durablejobs.spec.stages.parallelism minimum: 0, CRD: 1",
      // A zero is left out.
      "durablejobs.status.runs.workerLeaseDurationSeconds minimum: 0, CRD: 1",
      "durablejobs.status.stages.deferrals minimum: 0, CRD: 1",
      "durablejobs.status.stages.disruptions minimum: 0, CRD: 1",
      "durablejobs.status.stages.failures minimum: 0, CRD: 1",
      "jobqueues.spec.concurrency maximum: 2147483648, CRD: 1000000",
      "jobqueues.spec.concurrencyPerKey maximum: 2147483648, CRD: 1000000",
      "jobqueues.spec.rate.jobs maximum: 2147483648, CRD: 1000000",
      "jobqueues.status.rate.tokens maximum: 2147483648, CRD: null",
      "workerpools.status.waiting maximum: 2147483648, CRD: 9007199254740991",
  };
  for (const std::string name :
       {"busy", "busySlots", "draining", "failedStarts", "idle", "slots", "starting", "workers"}) {
    known.insert("workerpools.status." + name + " maximum: 2147483648, CRD: 2147483647");
  }
  EXPECT_EQ(look_at_all().differences, known);
}

// ---- A member that no visitor names.

struct Pair {
  int first = 0;
  std::optional<std::string> second;
};
template <class Io, Is<Pair> X>
constexpr void fields(Io& io, X& pair) {
  io("first", pair.first);
}
static_assert(!names_all<Pair>(), "it would not compile beside a struct of the API");

// ---- Reading and writing.

struct Sample {
  std::int64_t count = 7;
  std::string text = "as it was";
  bool flag = true;
  std::optional<std::int64_t> limit;
  std::optional<Heartbeat> heartbeat;
  std::vector<QueueRef> queues;
  bool works = false;
};
template <class Io, Is<Sample> X>
constexpr void fields(Io& io, X& sample) {
  io("count", sample.count, {.least = 1, .most = 9});
  io("text", sample.text, {.bytes = 4});
  io("flag", sample.flag, {.required = true});
  io("limit", sample.limit);
  io("heartbeat", sample.heartbeat);
  io("queues", sample.queues, {.entries = 2, .inside = "rules"});
  io("mode", sample.works, {}, Words{.no = "Rests", .yes = "Works"});
}
static_assert(names_all<Sample>());

Sample read_sample(const char* json) { return read<Sample>(document(*parse_json(json))); }

TEST(JsonIn, AbsentFieldsAndThoseOfAnotherTypeLeaveTheDefault) {
  for (
      const char* json :
      {"{}", "7",
       R"({"count": "1", "text": 2, "flag": "x", "limit": 1.5, "heartbeat": [], "queues": 1, "mode": 3})",
       R"({"queues": {"rules": {}}, "mode": "Sleeps"})"}) {
    const Sample sample = read_sample(json);
    EXPECT_EQ(sample.count, 7) << json;
    EXPECT_EQ(sample.text, "as it was");
    EXPECT_TRUE(sample.flag);
    EXPECT_FALSE(sample.limit || sample.heartbeat || sample.works);
    EXPECT_TRUE(sample.queues.empty());
  }
}

TEST(JsonIn, WhatIsReadIsWithinTheBoundsOfItsRule) {
  const Sample sample = read_sample(
      R"({"count": 12, "text": "kühl", "flag": false, "limit": 3, "heartbeat": {}, "mode": "Works",
          "queues": {"rules": [{"name": "a"}, {"priority": 2}, {"name": "c"}]}})");
  EXPECT_EQ(sample.count, 9);
  EXPECT_EQ(sample.text, "küh");
  EXPECT_FALSE(sample.flag);
  EXPECT_EQ(sample.limit, 3);
  EXPECT_EQ(sample.heartbeat.value().lease_duration, Heartbeat().lease_duration);
  ASSERT_EQ(sample.queues.size(), 2U);
  EXPECT_EQ(sample.queues[0].name, "a");
  EXPECT_EQ(sample.queues[1].priority, 2);
  EXPECT_TRUE(sample.works);
  EXPECT_EQ(read_sample(R"({"count": -3})").count, 1);
}

TEST(JsonOut, LeavesOutWhatSaysNothing) {
  api::Run run;
  EXPECT_EQ(write(run), (Json{{"index", 0}, {"attempt", 0}}));
  run.attempts = 1;
  run.failures = 2;
  run.pod_name = "encode-1";
  run.start_time = *parse_time("2026-01-02T03:04:05.5Z");
  run.refused = std::string(2000, 'x');
  EXPECT_EQ(write(run), (Json{{"index", 0},
                              {"attempt", 0},
                              {"failures", 2},
                              {"podName", "encode-1"},
                              {"startTime", "2026-01-02T03:04:05.500000000Z"},
                              {"refused", std::string(1024, 'x')}}));
  run.worker_uid = "u";
  EXPECT_FALSE(write(run).contains("podName")) << "a worker's attempt has no pod of its own";
}

}  // namespace
}  // namespace holdfast::api
