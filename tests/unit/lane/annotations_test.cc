#include "lane/annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lane/batch_job.h"

namespace holdfast::lane {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json fields(const Json& annotations) {
  Json spec = Json::object();
  Differences differences;
  add_annotated_fields(annotations, spec, differences);
  EXPECT_THAT(differences.errors, IsEmpty());
  return spec;
}

std::vector<std::string> errors(const Json& annotations) {
  Json spec = Json::object();
  Differences differences;
  add_annotated_fields(annotations, spec, differences);
  return differences.errors;
}

TEST(LaneAnnotations, EachFieldHasItsForm) {
  const Json spec = fields({{"holdfast.dev/lostAfterSeconds", "60"},
                            {"holdfast.dev/disruptionLimit", "0"},
                            {"holdfast.dev/heartbeat", R"({"progressDeadlineSeconds": 60})"},
                            {"holdfast.dev/queue", "encode"},
                            {"holdfast.dev/notify", "chat, mail"},
                            {"holdfast.dev/podReplacementPolicy", "Failed"}});
  EXPECT_EQ(spec["lostAfterSeconds"], 60);
  EXPECT_EQ(spec["disruptionLimit"], 0);
  EXPECT_EQ(spec["heartbeat"]["progressDeadlineSeconds"], 60);
  EXPECT_EQ(spec["queue"]["name"], "encode");
  EXPECT_EQ(spec["notify"], Json({"chat", "mail"}));
  EXPECT_EQ(spec["podReplacementPolicy"], "Failed");
  EXPECT_EQ(
      fields({{"holdfast.dev/queue", R"({"name": "a", "priority": 3})"}})["queue"]["priority"], 3);
}

TEST(LaneAnnotations, OthersAndOurOwnRecordAreNoFields) {
  EXPECT_EQ(fields({{"example.com/lostAfterSeconds", "x"},
                    {kNameAnnotation, "pi"},
                    {kUidsAnnotation, "a/b"}}),
            Json::object());
}

TEST(LaneAnnotations, WhatIsNoFieldOrNoValueOfItIsAnErrorThatSaysWhatToDo) {
  EXPECT_THAT(errors({{"holdfast.dev/lostAfter", "60"}}),
              ElementsAre(HasSubstr("lostAfterSeconds")));
  for (const char* const text : {"", "0", "-1", "60s", "99999999999", " 60"}) {
    EXPECT_THAT(errors({{"holdfast.dev/lostAfterSeconds", text}}),
                ElementsAre(HasSubstr("whole number of seconds")))
        << text;
  }
  EXPECT_THAT(errors({{"holdfast.dev/heartbeat", "true"}}), ElementsAre(HasSubstr("JSON object")));
  EXPECT_THAT(errors({{"holdfast.dev/notify", "a,,b"}}), ElementsAre(HasSubstr("commas")));
  EXPECT_THAT(errors({{"holdfast.dev/queue", ""}}), ElementsAre(HasSubstr("JobQueue")));
  EXPECT_THAT(errors({{"holdfast.dev/podReplacementPolicy", "failed"}}),
              ElementsAre(HasSubstr("TerminatingOrFailed")));
}

}  // namespace
}  // namespace holdfast::lane
