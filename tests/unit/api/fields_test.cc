// The visitors name each field of the CRDs, and each member of their structs.
#include "api/fields.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "api/json_in.h"
#include "api/json_out.h"
#include "api/pool.h"
#include "api/queue.h"
#include "api/spec.h"
#include "api/status.h"
#include "client/kube/yaml.h"
#include "tests/support/json_document.h"

namespace holdfast::api {
namespace {

using Names = std::set<std::string>;

// ---- What the visitors name: "heartbeat.leaseDurationSeconds".

class NamesOf {
 public:
  NamesOf(std::string prefix, Names& names) : prefix_(std::move(prefix)), names_(names) {}

  template <class Member, class... More>
  void operator()(const std::string& name, Member& member, const Rule& rule = {}, const More&...) {
    other(name);
    if (rule.inside) other(name + "." + rule.inside);
    look_into(member, prefix_ + name + "." + (rule.inside ? rule.inside + std::string(".") : ""));
  }
  void truth(const std::string& name, bool&, bool&, const Rule& = {}) { other(name); }
  template <class Member>
  void by_codec(const std::string& name, Member& member, const Rule& rule = {}) {
    (*this)(name, member, rule);
  }
  void other(const std::string& name) {
    EXPECT_TRUE(names_.insert(prefix_ + name).second) << prefix_ + name << " has two lines";
  }
  template <class Member, class... More>
  void own(Member&, const Rule& = {}, const More&...) {}
  template <class Member>
  void all_of(Member& member) {
    fields(*this, member);
  }

 private:
  template <class Item>
  void look_into(std::vector<Item>&, const std::string& prefix) {
    Item item{};
    look_into(item, prefix);
  }
  template <class Value>
  void look_into(std::optional<Value>&, const std::string& prefix) {
    Value value{};
    look_into(value, prefix);
  }
  template <class Member>
  void look_into(Member& member, const std::string& prefix) {
    if constexpr (requires(counting::Io io) { fields(io, member); }) {
      NamesOf inner(prefix, names_);
      fields(inner, member);
    }
  }

  std::string prefix_;
  Names& names_;
};

template <class Struct>
Names named() {
  Names names;
  Struct value;
  NamesOf io("", names);
  fields(io, value);
  return names;
}

// ---- What a CRD has.

void collect(const Json& schema, const std::string& prefix, Names& names) {
  const Json& inner = schema.contains("items") ? schema["items"] : schema;
  if (!inner.contains("properties")) return;
  for (const auto& [name, field] : inner["properties"].items()) {
    names.insert(prefix + name);
    // Kubernetes' own, which is passed on as it is.
    if (name != "template") collect(field, prefix + name + ".", names);
  }
}

Names fields_of(const std::string& plural, const char* part) {
  std::ifstream file(CRD_FOLDER "/holdfast.dev_" + plural + ".yaml");
  std::stringstream text;
  text << file.rdbuf();
  const auto documents = kube::parse_manifest(text.str());
  EXPECT_TRUE(documents.ok()) << documents.error().message;
  const Json& version = (*documents)[0]["spec"]["versions"][0];
  Names names;
  collect(version["schema"]["openAPIV3Schema"]["properties"][part], "", names);
  return names;
}

TEST(Fields, TheSpecOfAJobHasThoseOfItsCrd) {
  Names names = named<JobSpec>();
  // A stage has them from its job.
  for (const char* name : {"cancel", "suspend", "ttlSecondsAfterFinished"}) {
    EXPECT_EQ(names.erase(std::string("stages.") + name), 1U);
  }
  EXPECT_EQ(names, fields_of("durablejobs", "spec"));
}

TEST(Fields, TheStatusOfAJobHasThoseOfItsCrd) {
  EXPECT_EQ(named<Status>(), fields_of("durablejobs", "status"));
}

TEST(Fields, AQueueHasThoseOfItsCrd) {
  EXPECT_EQ(named<QueueSpec>(), fields_of("jobqueues", "spec"));
  EXPECT_EQ(named<QueueStatus>(), fields_of("jobqueues", "status"));
}

TEST(Fields, AWorkerPoolHasThoseOfItsCrd) {
  EXPECT_EQ(named<PoolSpec>(), fields_of("workerpools", "spec"));
  EXPECT_EQ(named<PoolStatus>(), fields_of("workerpools", "status"));
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
