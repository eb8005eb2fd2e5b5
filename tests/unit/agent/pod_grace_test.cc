// When the pod of a warm worker ends, and what its agent makes of it.
#include "agent/serve/pod_grace.h"

#include <gtest/gtest.h>

namespace holdfast::agent {
namespace {

using std::chrono::seconds;

SteadyTime at(Duration since_start) { return SteadyTime(seconds(1000)) + since_start; }

TEST(PodGrace, WithoutAMarkThirtySecondsAreAssumedAtMost) {
  PodGrace longer(seconds(100), seconds(8));
  longer.asked_to_end(at(seconds(0)));
  EXPECT_EQ(longer.end(), at(seconds(30)));
  PodGrace shorter(seconds(20), seconds(8));
  shorter.asked_to_end(at(seconds(0)));
  EXPECT_EQ(shorter.end(), at(seconds(20)));
}

TEST(PodGrace, AMarkCorrectsWhatWasAssumed) {
  PodGrace pod(seconds(30), seconds(8));
  pod.asked_to_end(at(seconds(0)));
  pod.marked(at(seconds(1)), seconds(100));
  EXPECT_EQ(pod.end(), at(seconds(100))) << "from SIGTERM on";
}

TEST(PodGrace, CountsFromTheMarkIfThatIsFirst) {
  PodGrace pod(seconds(30), seconds(8));
  pod.marked(at(seconds(0)), seconds(50));
  EXPECT_TRUE(pod.has_begun());
  EXPECT_FALSE(pod.is_asked_to_end());
  pod.asked_to_end(at(seconds(3)));
  EXPECT_EQ(pod.end(), at(seconds(50)));
}

TEST(PodGrace, AShorterGraceCountsAnewAndALongerOneNotAtAll) {
  PodGrace pod(seconds(30), seconds(8));
  pod.marked(at(seconds(0)), seconds(50));
  pod.marked(at(seconds(10)), seconds(5));
  EXPECT_EQ(pod.end(), at(seconds(15)));
  pod.marked(at(seconds(11)), seconds(60));
  EXPECT_EQ(pod.end(), at(seconds(15)));
}

TEST(PodGrace, ASecondIsLeftForTheLastReport) {
  PodGrace pod(seconds(30), seconds(8));
  pod.marked(at(seconds(0)), seconds(30));
  EXPECT_EQ(pod.kill_by(), at(seconds(29)));
  EXPECT_EQ(pod.stop_at(), at(seconds(21)));
}

TEST(PodGrace, WithLessTimeTheCommandsAreAskedAtOnce) {
  PodGrace pod(seconds(30), seconds(60));
  pod.marked(at(seconds(0)), seconds(30));
  EXPECT_EQ(pod.stop_at(), at(seconds(0)));
}

TEST(PodGrace, NoCommandIsStoppedForAnAssumedEndBeforeTheMarkCouldCome) {
  PodGrace pod(seconds(30), seconds(60));
  pod.asked_to_end(at(seconds(0)));
  EXPECT_EQ(pod.stop_at(), at(seconds(2)));
}

}  // namespace
}  // namespace holdfast::agent
