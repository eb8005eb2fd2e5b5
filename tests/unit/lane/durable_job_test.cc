#include "lane/durable_job.h"

#include <gtest/gtest.h>

#include "tests/unit/lane/lane_world.h"

namespace holdfast::lane {
namespace {

TEST(LaneDurableJob, ItIsOwnedByTheJobAndKeepsTheLabelsOfItsPods) {
  const World world(spec(R"({"ttlSecondsAfterFinished": 5})"));
  const Mapped mapped = map_job(world.job, "pi");
  EXPECT_TRUE(mapped.errors.empty());
  const Json body = *parse_json(creation_body(world.job, "pi", mapped, "3-of-32", true));
  const Json& owner = body["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["uid"], "job-uid");
  EXPECT_EQ(owner["controller"], true);
  EXPECT_EQ(body["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/job-name"], "pi");
  EXPECT_EQ(body["metadata"]["labels"]["holdfast.dev/shard"], "3-of-32");
  EXPECT_EQ(body["metadata"]["annotations"]["holdfast.dev/batch-job-name"], "pi");
  EXPECT_FALSE(body["metadata"].contains("finalizers"));
  for (const char* const gone : {"managedBy", "selector", "ttlSecondsAfterFinished"}) {
    EXPECT_FALSE(body["spec"].contains(gone)) << gone;
  }
}

TEST(LaneDurableJob, OneThatNamesTargetsStaysUntilTheyAreNotified) {
  World world;
  world.job.metadata["annotations"] = {{"holdfast.dev/notify", "chat"}};
  const auto body = [&](bool keeps_rights) {
    return *parse_json(
        creation_body(world.job, "pi", map_job(world.job, "pi"), "3-of-32", keeps_rights));
  };
  EXPECT_EQ(body(true)["metadata"]["finalizers"], Json::array({"holdfast.dev/outbox"}));
  EXPECT_FALSE(body(false)["metadata"].contains("finalizers")) << "nobody could remove it";
}

TEST(LaneDurableJob, ANameWithDotsOrWithoutRoomForAnIndexGetsASuffix) {
  World world;
  EXPECT_EQ(first_name(world.job), "pi");
  world.job.name = "with.dots";
  EXPECT_EQ(first_name(world.job).substr(0, 10), "with-dots-");
  world.job.name = std::string(63, 'x');
  EXPECT_EQ(first_name(world.job), world.job.name);
  world.job.spec = spec(R"({"completionMode": "Indexed", "completions": 100})");
  EXPECT_EQ(first_name(world.job).size() + 3, 63u);
}

TEST(LaneDurableJob, OnlyWhatMayChangeIsHashedBesideTheTemplate) {
  World world;
  const Source before = source_of(map_job(world.job, "pi").spec);
  world.job.metadata["annotations"] = {{"holdfast.dev/lostAfterSeconds", "60"}};
  EXPECT_EQ(source_of(map_job(world.job, "pi").spec), before);
  world.job.spec["parallelism"] = 0;
  EXPECT_NE(source_of(map_job(world.job, "pi").spec).fields, before.fields);
  EXPECT_EQ(parse_source(before.text()), before);
}

TEST(LaneDurableJob, ADeadlineThatOnlyBatchV1TakesIsTheNearestThatADurableJobTakes) {
  World world;
  for (const auto& [given, taken] :
       {std::pair<std::int64_t, std::int64_t>{0, 1}, {60, 60}, {4'000'000'000, 2'147'483'647}}) {
    world.job.spec["activeDeadlineSeconds"] = given;
    EXPECT_EQ(int_at(map_job(world.job, "pi").spec, "activeDeadlineSeconds"), taken);
  }
}

TEST(LaneDurableJob, APatchConflictsWithAnyOtherVersionAndRemovesWhatIsNull) {
  const Json patch = *parse_json(patch_body(7, {"a", "b"}, {{"activeDeadlineSeconds", nullptr}}));
  EXPECT_EQ(patch[0]["path"], "/metadata/resourceVersion");
  EXPECT_EQ(patch[0]["value"], "7");
  EXPECT_EQ(patch.back()["op"], "remove");
}

TEST(LaneDurableJob, WhatTheApiServerFillsInDoesNotHideTheLastWordsOfAContainer) {
  World world;
  Json& container = world.job.spec["template"]["spec"]["containers"][0];
  container["terminationMessagePolicy"] = "File";
  const Json mapped = map_job(world.job, "pi").spec;
  EXPECT_FALSE(mapped["template"]["spec"]["containers"][0].contains("terminationMessagePolicy"));
  container["terminationMessagePolicy"] = "FallbackToLogsOnError";
  EXPECT_EQ(map_job(world.job, "pi")
                .spec["template"]["spec"]["containers"][0]["terminationMessagePolicy"],
            "FallbackToLogsOnError");
}

}  // namespace
}  // namespace holdfast::lane
