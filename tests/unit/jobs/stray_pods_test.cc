// What a walk over all pods does with those of ours that have lost their labels, on the real client
// and a scripted transport.
#include "operator/jobs/stray_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconciler/names.h"
#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"
#include "tests/support/no_credentials.h"

namespace holdfast::jobs {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::EndsWith;

class StrayPodsTest : public ::testing::Test {
 protected:
  // The first walk finds this pod of the DurableJob "film".
  void walk() {
    strays_.walk_soon();
    loop_.advance(StrayPods::kFirstWalk + seconds(1));
    ASSERT_EQ(transport_.pending(), 1u);
    transport_.answer(200, std::string(R"({"metadata": {"resourceVersion": "9"}, "items": [
        {"metadata": {"name": "film-1-x2k9d", "namespace": "media", "uid": "pod-uid",
                      "resourceVersion": "8", "finalizers": [")") +
                               reconciler::kFinalizer + R"("],
                      "ownerReferences": [{"apiVersion": "holdfast.dev/v1alpha1",
                        "kind": "DurableJob", "name": "film", "uid": "job-uid",
                        "controller": true}]}}]})");
    loop_.run_ready();
    ASSERT_EQ(transport_.pending(), 1u);
    EXPECT_THAT(transport_.request().target, EndsWith("/namespaces/media/durablejobs/film"));
  }
  void job_is(const std::string& uid) {
    transport_.answer(200, R"({"metadata": {"name": "film", "namespace": "media", "uid": ")" + uid +
                               R"(", "resourceVersion": "7"}})");
    loop_.run_ready();
  }

  std::vector<std::string> done_;
  test::ManualLoop loop_;
  SeededRandom random_{1};
  test::FakeTransport transport_{loop_};
  test::NoCredentials credentials_{loop_};
  kube::Client client_{{loop_, transport_, credentials_, random_, Log(), {}}};
  StrayPods strays_{
      {loop_, client_, Log(), [](int) { return std::optional(membership::Ownership::Claim{}); },
       [](const std::string&, const std::string&) { return false; },
       [this](std::string, std::string name, std::string,
              membership::Ownership::Claim) -> Task<Result<>> {
         done_.push_back("release " + name);
         co_return Unit{};
       },
       [this](std::string, std::string name, std::string, std::string, std::string uid,
              membership::Ownership::Claim) -> Task<Result<>> {
         done_.push_back("relabel " + name + " of " + uid);
         co_return Unit{};
       }},
      {}};
};

TEST_F(StrayPodsTest, OneWhoseJobIsThereGetsItsLabelsAndIsNotReleased) {
  walk();
  job_is("job-uid");
  EXPECT_THAT(done_, ElementsAre("relabel film-1-x2k9d of job-uid"));
}

TEST_F(StrayPodsTest, OneWhoseJobIsGoneIsReleased) {
  walk();
  transport_.answer(404, R"({"kind": "Status", "code": 404, "reason": "NotFound"})");
  loop_.run_ready();
  EXPECT_THAT(done_, ElementsAre("release film-1-x2k9d"));
}

TEST_F(StrayPodsTest, AnotherJobOfTheNameIsNotTheirs) {
  walk();
  job_is("another-uid");
  EXPECT_THAT(done_, ElementsAre("release film-1-x2k9d"));
}

TEST_F(StrayPodsTest, AReadThatFailsSaysNothing) {
  walk();
  transport_.answer(503, "{}");
  loop_.run_ready();
  EXPECT_THAT(done_, ElementsAre());
}

}  // namespace
}  // namespace holdfast::jobs
