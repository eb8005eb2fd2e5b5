#include "tests/unit/kube/client_fixture.h"

namespace holdfast::kube {
namespace {

using namespace std::chrono_literals;
using test::header;

class WatchTest : public ClientTest {
 protected:
  static Kind pods() {
    Kind kind;
    kind.name = kind.plural = "pods";
    kind.group_path = "/api/v1";
    kind.label_selector = "holdfast.dev/job in (a,b)";
    kind.decode = [](const JsonView& json) -> ObjectPtr {
      auto object = std::make_shared<Object>();
      return decode_meta(json, *object) ? object : nullptr;
    };
    return kind;
  }

  Client::WatchId watch(const Kind& kind = pods(), const std::string& query = "resourceVersion=5") {
    Client::WatchHandlers handlers;
    handlers.on_open = [this] { ++opened_; };
    handlers.on_events = [this](std::vector<WatchEvent>&& events) {
      for (WatchEvent& event : events) events_.push_back(std::move(event));
    };
    handlers.on_end = [this](std::optional<Error> error) {
      ++ended_;
      error_ = std::move(error);
    };
    const Client::WatchId id = client_.watch(kind, "media", query, 300s, handlers);
    loop_.run_ready();
    return id;
  }

  int opened_ = 0;
  int ended_ = 0;
  std::vector<WatchEvent> events_;
  std::optional<Error> error_;
};

const char* const kAdded =
    R"({"type":"ADDED","object":{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}})";

TEST_F(WatchTest, AsksForTheKindWithCredentialsAndAServerTimeout) {
  watch();
  ASSERT_EQ(transport_.streams(), 1u);
  const http::StreamRequest& request = transport_.stream();
  EXPECT_EQ(request.target,
            "/api/v1/namespaces/media/pods?resourceVersion=5&watch=1&timeoutSeconds=300"
            "&labelSelector=holdfast.dev%2Fjob%20in%20%28a,b%29");
  EXPECT_EQ(header(request.headers, "Authorization"), "Bearer token-1");
  EXPECT_EQ(header(request.headers, "Accept"), "application/json;drop=metadata.managedFields");
  EXPECT_EQ(request.idle_timeout, Duration(150s)) << "a bookmark comes each minute";
}

TEST_F(WatchTest, MetadataAloneIsAskedForByTheAcceptHeader) {
  Kind kind = pods();
  kind.metadata_only = true;
  watch(kind);
  EXPECT_EQ(
      header(transport_.stream().headers, "Accept"),
      "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;drop=metadata.managedFields,"
      "application/json;drop=metadata.managedFields");
  auto list = start(client_.list(kind, "", "limit=500"));
  EXPECT_EQ(header(transport_.request().headers, "Accept"),
            "application/"
            "json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;drop=metadata.managedFields,"
            "application/json;drop=metadata.managedFields");
  EXPECT_EQ(transport_.request().target,
            "/api/v1/pods?limit=500&labelSelector=holdfast.dev%2Fjob%20in%20%28a,b%29");
  EXPECT_TRUE(transport_.request().accept_gzip);
}

TEST_F(WatchTest, GivesEventsInOrderAndACleanEnd) {
  watch();
  transport_.open_stream();
  transport_.stream_lines(
      {kAdded, R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}})"});
  transport_.end_stream();
  loop_.run_ready();
  EXPECT_EQ(opened_, 1);
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[0].object->name, "a");
  EXPECT_EQ(events_[1].version, 9u);
  EXPECT_EQ(ended_, 1);
  EXPECT_FALSE(error_.has_value());
}

TEST_F(WatchTest, ARefusedWatchEndsWithTheServersReasonAndNeverOpens) {
  watch();
  transport_.open_stream(0, 410, R"({"reason": "Expired", "message": "too old"})");
  loop_.run_ready();
  EXPECT_EQ(opened_, 0);
  EXPECT_EQ(ended_, 1);
  ASSERT_TRUE(error_.has_value());
  EXPECT_EQ(error_->code, ErrorCode::kGone);
  EXPECT_EQ(error_->message, "too old");
}

TEST_F(WatchTest, A401RenewsTheCredentialsAndOpensItAgainAtOnceOnce) {
  watch();
  transport_.open_stream(0, 401, "{}");
  loop_.run_ready();
  ASSERT_EQ(transport_.streams(), 1u);
  EXPECT_EQ(header(transport_.stream().headers, "Authorization"), "Bearer token-2");
  EXPECT_EQ(ended_, 0);
  transport_.open_stream(0, 401, "{}");
  loop_.run_ready();
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(error_->code, ErrorCode::kUnauthorized);
}

TEST_F(WatchTest, ACancelledWatchEndsCancelledOnce) {
  const auto id = watch();
  transport_.open_stream();
  loop_.run_ready();
  client_.cancel_watch(id);
  client_.cancel_watch(id);
  loop_.run_ready();
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(error_->code, ErrorCode::kCancelled);
  EXPECT_EQ(transport_.streams(), 0u);
}

TEST_F(WatchTest, OneThatWaitsForCredentialsCanBeCancelledToo) {
  credentials_.held = true;
  const auto id = watch();
  client_.cancel_watch(id);
  loop_.run_ready();
  EXPECT_EQ(ended_, 1);
  credentials_.waiting.at(0)(std::string("Bearer x"));
  loop_.run_ready();
  EXPECT_EQ(transport_.streams(), 0u);
  EXPECT_EQ(ended_, 1);
}

TEST_F(WatchTest, CredentialsThatFailEndIt) {
  credentials_.error = make_error(ErrorCode::kUnauthorized, "no token");
  watch();
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(error_->message, "no token");
}

TEST_F(WatchTest, ShutDownEndsAllAndRefusesNewOnes) {
  watch();
  transport_.open_stream();
  loop_.run_ready();
  client_.shut_down();
  loop_.run_ready();
  EXPECT_EQ(ended_, 1);
  watch();
  EXPECT_EQ(ended_, 2);
  EXPECT_EQ(error_->code, ErrorCode::kCancelled);
  EXPECT_EQ(transport_.history.size(), 1u);
}

TEST_F(WatchTest, AListIsDecodedPageByPage) {
  auto result = start(client_.list(pods(), "media", "limit=1"));
  transport_.answer(200, R"({"metadata": {"resourceVersion": "8", "continue": "next"},
      "items": [{"metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}]})");
  loop_.run_ready();
  ASSERT_TRUE(*result && (*result)->ok());
  EXPECT_EQ((**result)->items.size(), 1u);
  EXPECT_EQ((**result)->continue_token, "next");
  EXPECT_EQ((**result)->version, 8u);
}

}  // namespace
}  // namespace holdfast::kube
