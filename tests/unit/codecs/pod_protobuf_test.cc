// A pod reads the same from protobuf as from JSON.
#include "operator/codecs/pod_protobuf.h"

#include <gtest/gtest.h>

#include "client/kube/base64.h"
#include "client/kube/errors.h"
#include "operator/codecs/at_rest.h"
#include "operator/codecs/pod_codec.h"
#include "tests/unit/codecs/pod_events.h"

namespace holdfast::codecs {
namespace {

using kube::WatchEvent;
using kube::WatchEventType;

std::string frame_of(const PodEvent& event) { return *kube::base64_decode(event.protobuf); }

// A field of protobuf with a length: numbers below 16, and short contents.
std::string field(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} +
         content;
}

std::string event_frame(const std::string& type, const std::string& kind,
                        const std::string& object) {
  const std::string unknown = field(1, field(1, "v1") + field(2, kind)) + field(2, object);
  return field(1, type) + field(2, field(1, std::string("k8s\0", 4) + unknown));
}

std::string pod_frame(const std::string& name) {
  return event_frame("MODIFIED", "Pod",
                     field(1, field(1, name) + field(5, "u") + field(6, "7")) + field(3, ""));
}

TEST(PodProtobuf, AnEventOfARealApiServerReadsAsItsJson) {
  const kube::Kind kind = pod_kind();
  int pods = 0;
  for (const PodEvent& event : kPodEvents) {
    const WatchEvent ours = kube::decode_watch_line(kind, frame_of(event));
    const WatchEvent theirs = kube::decode_watch_line(kind, event.json);
    ASSERT_NE(ours.type, WatchEventType::kError) << ours.error.message;
    EXPECT_EQ(ours.type, theirs.type);
    EXPECT_EQ(ours.version, theirs.version);
    EXPECT_EQ(ours.initial_events_end, theirs.initial_events_end);
    ASSERT_EQ(!ours.object, !theirs.object);
    if (!ours.object) continue;
    const auto& pod = dynamic_cast<const CachedPod&>(*ours.object);
    const auto& same = dynamic_cast<const CachedPod&>(*theirs.object);
    EXPECT_EQ(pod.pod, same.pod);
    EXPECT_EQ(pod.job_name, same.job_name);
    EXPECT_EQ(pod.key(), same.key());
    EXPECT_EQ(pod.owner_uid, same.owner_uid);
    ++pods;
  }
  EXPECT_EQ(pods, 2);
}

// So that the two pods above have something to differ in.
TEST(PodProtobuf, TheEventsHaveWhatTheDecoderReads) {
  const kube::Kind kind = pod_kind();
  const auto read = [&](int event) {
    const auto object = kube::decode_watch_line(kind, frame_of(kPodEvents[event])).object;
    return dynamic_cast<const CachedPod&>(*object).pod;
  };
  const reconciler::PodView evicted = read(0);
  EXPECT_TRUE(evicted.deletion && evicted.intent && evicted.placed && evicted.has_finalizer);
  EXPECT_TRUE(evicted.disruption_target);
  EXPECT_EQ(evicted.conditions.size(), 2u);
  ASSERT_EQ(evicted.containers.size(), 4u);
  EXPECT_TRUE(evicted.containers[0].terminated && evicted.containers[1].sidecar);
  EXPECT_TRUE(evicted.containers[2].worker && evicted.containers[2].terminated->out_of_memory);
  EXPECT_EQ(evicted.containers[3].waiting_reason, "ImagePullBackOff");
  EXPECT_EQ(read(1).gates, "example.com/a, example.com/b");
}

TEST(PodProtobuf, AnErrorHasItsCodeAndItsWait) {
  const auto number = [](int field, int value) {
    return std::string{static_cast<char>(field << 3), static_cast<char>(value)};
  };
  const std::string status = field(3, "try later") + field(4, "TooManyRequests") +
                             field(5, number(5, 20)) + std::string("\x30\xad\x03", 3);
  const WatchEvent event =
      kube::decode_watch_line(pod_kind(), event_frame("ERROR", "Status", status));
  EXPECT_EQ(event.type, WatchEventType::kError);
  EXPECT_EQ(event.error.http_status, 429);
  EXPECT_EQ(event.error.code, ErrorCode::kThrottled);
  EXPECT_EQ(event.error.message, "try later");
  EXPECT_EQ(event.error.retry_after, std::chrono::seconds(20));
}

TEST(PodProtobuf, ARefusedWatchSaysWhyInProtobuf) {
  http::Response response;
  response.status = 403;
  const std::string status = field(3, "pods is forbidden") + field(4, "Forbidden");
  response.body =
      std::string("k8s\0", 4) + field(1, field(1, "v1") + field(2, "Status")) + field(2, status);
  const Error error = kube::error_from_response(response);
  EXPECT_EQ(error.code, ErrorCode::kForbidden);
  EXPECT_EQ(error.reason, "Forbidden");
  EXPECT_EQ(error.message, "pods is forbidden");
}

TEST(PodProtobuf, ATextThatIsNotUtf8SpoilsNoEvent) {
  const WatchEvent event = kube::decode_watch_line(pod_kind(), pod_frame("a\xff\"\nb"));
  ASSERT_TRUE(event.object) << event.error.message;
  EXPECT_EQ(event.object->name, "a\xef\xbf\xbd\"\nb");
}

TEST(PodProtobuf, AFrameThatIsCutOffIsAnErrorAndNoPod) {
  const std::string whole = pod_frame("train-1");
  ASSERT_TRUE(kube::decode_watch_line(pod_kind(), whole).object);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const WatchEvent event = kube::decode_watch_line(pod_kind(), whole.substr(0, size));
    EXPECT_EQ(event.type, WatchEventType::kError) << size;
    EXPECT_FALSE(event.object) << size;
  }
}

TEST(PodProtobuf, AServerThatAnswersInJsonIsUnderstood) {
  EXPECT_TRUE(kube::decode_watch_line(pod_kind(), kPodEvents[0].json).object);
}

}  // namespace
}  // namespace holdfast::codecs
