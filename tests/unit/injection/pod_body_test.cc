// Where the pod of an attempt wishes to run.
#include "operator/injection/pod_body.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace holdfast::injection {
namespace {

constexpr const char* kWishes =
    "/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";

Json spec_of(const Json& template_spec, const std::vector<std::string>& avoid) {
  reconciler::CreatePod create{3, "encode-3-abcde"};
  create.avoid = avoid;
  const Json given = {{"spec", template_spec}};
  return Json::parse(*pod_body({}, given.dump(), create, "", "7-of-32"))["spec"];
}

Json wish(const std::string& node) {
  return Json::parse(R"({"weight": 1, "preference": {"matchFields": [
      {"key": "metadata.name", "operator": "NotIn", "values": [")" +
                     node + R"("]}]}})");
}

TEST(PodBody, APodPrefersOtherNodesThanThoseOfLostAttempts) {
  EXPECT_FALSE(spec_of(Json::object(), {}).contains("affinity"));
  const Json spec = spec_of(Json::object(), {"a", "b"});
  Json both = wish("a");
  both["preference"]["matchFields"].push_back(wish("b")["preference"]["matchFields"][0]);
  EXPECT_EQ(spec.at(Json::json_pointer(kWishes)), Json::array({both}));
}

TEST(PodBody, TheWishWeighsTwiceAsMuchAsTheTemplatesPreferences) {
  const auto weights_beside = [](const std::string& theirs) {
    Json given;
    given[Json::json_pointer(kWishes)] = Json::parse(theirs);
    std::vector<std::int64_t> ours;
    const Json spec = spec_of(given, {"a"});
    for (const Json& one : spec.at(Json::json_pointer(kWishes))) {
      if (one.contains("preference")) ours.push_back(one["weight"]);
    }
    return ours;
  };
  using Weights = std::vector<std::int64_t>;
  EXPECT_EQ(weights_beside("[]"), Weights{1});
  EXPECT_EQ(weights_beside(R"([{"weight": 10}, {"weight": 7}])"), Weights{35});
  EXPECT_EQ(weights_beside(R"([{"weight": 100}])"), (Weights{100, 100, 1})) << "100 is the most";
  EXPECT_EQ(weights_beside(R"([{"weight": 9000000000000000000}, {"weight": -5}, {"weight": 0.5}])"),
            (Weights{100, 100, 1}));
  const std::string hundred = R"({"weight": 100},)";
  EXPECT_EQ(weights_beside("[" + hundred + hundred + hundred + hundred + hundred + hundred +
                           R"({"weight": 100}])"),
            Weights(10, 100));
}

// Kueue would never let it in.
TEST(PodBody, APodOfAKueuePodGroupHasNoWish) {
  Json spec = Json::object();
  prefer_other_nodes({"a"}, {{"kueue.x-k8s.io/pod-group-name", "g"}}, spec);
  EXPECT_TRUE(spec.empty());
}

TEST(PodBody, TheTemplatesOwnAffinityStays) {
  Json given;
  given[Json::json_pointer("/affinity/podAffinity")] = {{"x", 1}};
  given[Json::json_pointer(
      "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution")] = {{"y", 2}};
  given[Json::json_pointer(kWishes)] = Json::array({"the user's"});
  Json expected = given["affinity"];
  expected["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"].push_back(wish("a"));
  EXPECT_EQ(spec_of(given, {"a"})["affinity"], expected);
}

TEST(PodBody, AnAffinityThatIsNoneIsLeftToTheApiServer) {
  for (const char* pointer : {"/affinity", "/affinity/nodeAffinity", kWishes}) {
    Json given;
    given[Json::json_pointer(pointer)] = "text";
    EXPECT_EQ(spec_of(given, {"a"}), spec_of(given, {})) << pointer;
    given[Json::json_pointer(pointer)] = nullptr;
    EXPECT_EQ(spec_of(given, {"a"}).at(Json::json_pointer(kWishes)), Json::array({wish("a")}));
  }
}

}  // namespace
}  // namespace holdfast::injection
