#include "client/kube/object.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "client/kube/list_reader.h"

namespace holdfast::kube {
namespace {

Kind pods() {
  Kind kind;
  kind.name = kind.plural = "pods";
  kind.group_path = "/api/v1";
  kind.decode = [](const JsonView& json) -> ObjectPtr {
    if (at(json, "explode").is_boolean()) throw std::runtime_error("unforeseen");
    auto object = std::make_shared<Object>();
    return decode_meta(json, *object) ? object : nullptr;
  };
  return kind;
}

TEST(ObjectPath, PutsTogetherCollectionObjectAndSubresource) {
  EXPECT_EQ(collection_path("/api/v1", "pods", ""), "/api/v1/pods");
  EXPECT_EQ(collection_path("/api/v1", "pods", "media"), "/api/v1/namespaces/media/pods");
  EXPECT_EQ(object_path("/api/v1", "nodes", "", "node-1"), "/api/v1/nodes/node-1");
  EXPECT_EQ(object_path("/apis/holdfast.dev/v1alpha1", "durablejobs", "m", "a.b-c", "status"),
            "/apis/holdfast.dev/v1alpha1/namespaces/m/durablejobs/a.b-c/status");
}

TEST(ObjectPath, NoNameCanLeaveItsSegment) {
  EXPECT_EQ(object_path("/api/v1", "pods", "a/b", "../c?x=1#y z%"),
            "/api/v1/namespaces/a%2Fb/pods/..%2Fc%3Fx%3D1%23y%20z%25");
  EXPECT_EQ(object_path("/api/v1", "pods", "..", "."), "/api/v1/namespaces/%2E%2E/pods/%2E");
  EXPECT_EQ(object_path("/api/v1", "pods", "", "\xc3\xa4\n"), "/api/v1/pods/%C3%A4%0A");
}

TEST(Path, AnEmptyNameNeverMakesThePathOfTheCollection) {
  EXPECT_EQ(object_path("/api/v1", "pods", "media", ""), "/api/v1/namespaces/media/pods/-");
}

TEST(DecodeMeta, ReadsWhatEveryCachedObjectHas) {
  Object object;
  ASSERT_TRUE(
      decode_meta(*JsonDocument::parse(R"({"metadata": {"name": "a", "namespace": "n", "uid": "u",
      "resourceVersion": "18446744073709551615", "ownerReferences": [
        {"uid": "first"}, {"uid": "boss", "controller": true}, {"uid": "last"}]}})"),
                  object));
  EXPECT_EQ(object.key(), "n/a");
  EXPECT_EQ(object.uid, "u");
  EXPECT_EQ(object.version, 18446744073709551615u);
  EXPECT_EQ(object.owner_uid, "boss");
}

TEST(DecodeMeta, ReportsWhatIsMissing) {
  for (const char* const text :
       {R"({})", R"({"metadata": []})", R"({"metadata": {"name": "a", "uid": "u"}})",
        R"({"metadata": {"name": "a", "resourceVersion": "1"}})",
        R"({"metadata": {"uid": "u", "resourceVersion": "1"}})",
        R"({"metadata": {"name": "a", "uid": "u", "resourceVersion": "x1"}})",
        R"({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1x"}})",
        R"({"metadata": {"name": "a", "uid": "u", "resourceVersion": "-1"}})",
        R"({"metadata": {"name": "a", "uid": "u", "resourceVersion": 1}})"}) {
    Object object;
    EXPECT_FALSE(decode_meta(*JsonDocument::parse(text), object)) << text;
  }
}

TEST(DecodeList, GivesItemsVersionAndContinueToken) {
  const auto page = decode_list(pods(), R"({"metadata": {"resourceVersion": "7", "continue": "c"},
      "items": [{"metadata": {"name": "a", "uid": "1", "resourceVersion": "3"}},
                {"metadata": {"name": "b", "uid": "2", "resourceVersion": "4"}}]})");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->version, 7u);
  EXPECT_EQ(page->continue_token, "c");
  ASSERT_EQ(page->items.size(), 2u);
  EXPECT_EQ(page->items[1]->name, "b");
  EXPECT_EQ(page->undecodable, 0);
}

TEST(DecodeList, CountsAndLeavesOutWhatCannotBeDecoded) {
  const auto page = decode_list(pods(), R"({"metadata": {"resourceVersion": "7"}, "items": [
      {"explode": true}, 5, null, {"metadata": {"name": "a", "uid": "1", "resourceVersion": "3"}}]})");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->items.size(), 1u);
  EXPECT_EQ(page->undecodable, 3);
}

TEST(DecodeList, AnEmptyListMayHaveNullItems) {
  const auto page = decode_list(pods(), R"({"metadata": {"resourceVersion": "7"}, "items": null})");
  ASSERT_TRUE(page.ok());
  EXPECT_TRUE(page->items.empty());
}

TEST(DecodeList, RefusesWhatIsNoList) {
  for (const char* const text : {"", "[]", "{}", R"({"metadata": {}, "items": []})",
                                 R"({"metadata": {"resourceVersion": "1"}, "items": {}})",
                                 R"({"metadata": {"resourceVersion": "1"}, "items": [)"}) {
    const auto page = decode_list(pods(), text);
    ASSERT_FALSE(page.ok()) << text;
    EXPECT_EQ(page.error().code, ErrorCode::kTransient) << text;
  }
}

std::string event(const std::string& type) {
  return R"({"type": ")" + type +
         R"(", "object": {"metadata": {"name": "a", "uid": "1", "resourceVersion": "3"}}})";
}

TEST(DecodeWatchLine, GivesTypeObjectAndVersion) {
  EXPECT_EQ(decode_watch_line(pods(), event("ADDED")).type, WatchEventType::kAdded);
  EXPECT_EQ(decode_watch_line(pods(), event("MODIFIED")).type, WatchEventType::kModified);
  const WatchEvent deleted = decode_watch_line(pods(), event("DELETED"));
  EXPECT_EQ(deleted.type, WatchEventType::kDeleted);
  EXPECT_EQ(deleted.version, 3u);
  ASSERT_NE(deleted.object, nullptr);
  EXPECT_EQ(deleted.object->name, "a");
}

TEST(DecodeWatchLine, AnObjectThatCannotBeDecodedStillAdvancesTheVersion) {
  const WatchEvent event = decode_watch_line(
      pods(),
      R"({"type": "ADDED", "object": {"explode": true, "metadata": {"resourceVersion": "9"}}})");
  EXPECT_EQ(event.type, WatchEventType::kAdded);
  EXPECT_EQ(event.object, nullptr);
  EXPECT_EQ(event.version, 9u);
}

TEST(DecodeWatchLine, KnowsTheBookmarkThatEndsTheInitialEvents) {
  const WatchEvent plain = decode_watch_line(
      pods(), R"({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5"}}})");
  EXPECT_EQ(plain.type, WatchEventType::kBookmark);
  EXPECT_EQ(plain.version, 5u);
  EXPECT_FALSE(plain.initial_events_end);
  const WatchEvent last = decode_watch_line(
      pods(), R"({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5",
               "annotations": {"k8s.io/initial-events-end": "true"}}}})");
  EXPECT_TRUE(last.initial_events_end);
}

TEST(DecodeWatchLine, MapsErrorEventsByWhatTheWatcherDoesNext) {
  const auto code = [](const std::string& status) {
    const WatchEvent event =
        decode_watch_line(pods(), R"({"type": "ERROR", "object": )" + status + "}");
    EXPECT_EQ(event.type, WatchEventType::kError);
    return event.error.code;
  };
  EXPECT_EQ(code(R"({"code": 410, "reason": "Expired"})"), ErrorCode::kGone);
  EXPECT_EQ(code(R"({"code": 500, "reason": "Expired"})"), ErrorCode::kGone);
  EXPECT_EQ(code(R"({"code": 429})"), ErrorCode::kThrottled);
  EXPECT_EQ(code(R"({"code": 500})"), ErrorCode::kTransient);
  EXPECT_EQ(code(R"({"code": 504})"), ErrorCode::kTransient);
  EXPECT_EQ(code(R"({"code": 403})"), ErrorCode::kTerminal);
  EXPECT_EQ(code("{}"), ErrorCode::kTerminal);
  EXPECT_EQ(decode_watch_line(pods(), R"({"type": "ERROR", "object":
      {"code": 429, "details": {"retryAfterSeconds": 3}}})")
                .error.retry_after,
            std::chrono::nanoseconds(std::chrono::seconds(3)));
}

TEST(DecodeWatchLine, MalformedLinesAreErrorsThatAreTriedAgain) {
  for (const char* const line :
       {"", "{", "[]", "{}", R"({"type": "NEW", "object": {}})", R"({"type": "ADDED"})",
        R"({"type": "BOOKMARK", "object": {"metadata": {}}})"}) {
    const WatchEvent event = decode_watch_line(pods(), line);
    EXPECT_EQ(event.type, WatchEventType::kError) << line;
    EXPECT_EQ(event.error.code, ErrorCode::kTransient) << line;
  }
}

}  // namespace
}  // namespace holdfast::kube
