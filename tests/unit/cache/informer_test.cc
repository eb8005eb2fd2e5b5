// The informer on the real client and a scripted transport.
#include "client/cache/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"
#include "tests/support/no_credentials.h"
#include "tests/unit/cache/watch_text.h"

namespace holdfast::cache {
namespace {

using namespace std::chrono_literals;
using holdfast::test::FakeTransport;
using holdfast::test::ManualLoop;
using holdfast::test::NoCredentials;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

kube::Kind pods() {
  kube::Kind kind;
  kind.name = "pods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.label_selector = "app";
  kind.decode = kube::decode_bare;
  return kind;
}

std::string bookmark_json(int version, bool end = false) {
  return R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":")" +
         std::to_string(version) + R"(")" +
         (end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "") + "}}}";
}

class InformerTest : public ::testing::Test {
 protected:
  void make(std::vector<std::string> namespaces = {}, bool streaming = false) {
    Informer::Dependencies dependencies{loop, client, random, Log()};
    dependencies.streaming_lists = streaming;
    informer = std::make_unique<Informer>(dependencies, pods(), std::move(namespaces));
    informer->on_change([this](const Change& change) {
      reported.push_back((change.before ? "" : "+") +
                         (change.after ? change.after : change.before)->name +
                         (change.after ? "" : "-"));
      sizes.push_back(informer->store().size());
      synced_seen = synced_seen || informer->synced();
      if (on_change) on_change();
    });
    informer->on_progress([this] { ++progress; });
  }
  void start() {
    informer->start();
    loop.run_ready();
  }
  void answer(const std::string& body) {
    transport.answer(200, body);
    loop.run_ready();
  }
  void open(std::size_t index = 0) {
    transport.open_stream(index);
    loop.run_ready();
  }
  void lines(const std::vector<std::string>& text, std::size_t index = 0) {
    transport.stream_lines(text, index);
    loop.run_ready();
  }
  void end(std::optional<Error> error = std::nullopt) {
    transport.end_stream(0, error);
    loop.run_ready();
  }
  // The first watch after a refresh; the next one opens.
  void short_watch_ends() {
    loop.advance(std::chrono::seconds(3));
    end();
    answer(list_json(20));
    open();
  }
  // Listed with "a" at version 10, watching.
  void watching() {
    make();
    start();
    answer(list_json(10, {object_json("a", 9, "x")}));
    open();
    ASSERT_TRUE(informer->live());
    reported.clear();
    sizes.clear();
    progress = 0;
  }

  ManualLoop loop;
  SeededRandom random{1};
  FakeTransport transport{loop};
  NoCredentials credentials{loop};
  kube::Client client{{loop, transport, credentials, random, Log(), {}}};
  std::unique_ptr<Informer> informer;
  std::vector<std::string> reported;
  std::vector<std::size_t> sizes;  // of the store, as the handlers saw it
  bool synced_seen = false;
  int progress = 0;
  std::function<void()> on_change;
};

TEST_F(InformerTest, IsSyncedOnceTheInitialListWasDeliveredAndNotBefore) {
  make();
  start();
  EXPECT_THAT(transport.request().target, HasSubstr("/api/v1/pods?resourceVersion=0&limit=500"));
  EXPECT_THAT(transport.request().target, HasSubstr("labelSelector=app"));
  EXPECT_FALSE(informer->synced());
  answer(list_json(10, {object_json("a", 9, "x"), object_json("b", 8, "x")}));
  EXPECT_THAT(reported, ElementsAre("+a", "+b"));
  EXPECT_THAT(sizes, ElementsAre(2u, 2u)) << "the store is swapped before handlers run";
  EXPECT_FALSE(synced_seen);
  EXPECT_TRUE(informer->synced());
  EXPECT_GE(progress, 1);
  EXPECT_EQ(informer->version("x"), 10u);
}

TEST_F(InformerTest, AnEmptyListIsSyncedToo) {
  make();
  start();
  answer(list_json(10));
  EXPECT_TRUE(informer->synced());
  EXPECT_EQ(progress, 1);
}

TEST_F(InformerTest, EventsAreDeliveredInOrderWithProgressOncePerBatch) {
  watching();
  lines({event_json("ADDED", object_json("b", 11, "x")),
         event_json("MODIFIED", object_json("a", 12, "x")),
         event_json("DELETED", object_json("b", 13, "x")), bookmark_json(20)});
  EXPECT_THAT(reported, ElementsAre("+b", "a", "b-"));
  EXPECT_EQ(progress, 1);
  EXPECT_EQ(informer->version("x"), 20u);
  lines({bookmark_json(21)});
  EXPECT_EQ(progress, 2) << "a version that advances is progress";
}

TEST_F(InformerTest, TheVersionThatAHandlerSeesIsThatOfTheStore) {
  watching();
  std::vector<std::uint64_t> versions;
  on_change = [&] { versions.push_back(informer->version("x")); };
  lines({event_json("ADDED", object_json("b", 11, "x")),
         event_json("ADDED", object_json("c", 12, "x"))});
  EXPECT_THAT(versions, ElementsAre(12u, 12u));
  EXPECT_THAT(sizes, ElementsAre(3u, 3u));
}

TEST_F(InformerTest, LiveFollowsTheWatchAndSaysSinceWhen) {
  make();
  const SteadyTime made = loop.now();
  EXPECT_EQ(informer->live_changed_at(), made);
  start();
  loop.advance(1s);
  answer(list_json(10));
  EXPECT_FALSE(informer->live());
  open();
  EXPECT_TRUE(informer->live());
  EXPECT_EQ(informer->live_changed_at(), made + 1s);
  loop.advance(30s);
  const int before = progress;
  transport.end_stream(0, FakeTransport::lost("reset", false));
  loop.run_ready();
  EXPECT_FALSE(informer->live());
  EXPECT_EQ(informer->live_changed_at(), made + 31s);
  EXPECT_EQ(progress, before + 1);
  EXPECT_EQ(informer->trouble(), "reset");
}

TEST_F(InformerTest, AWatchMayBeSilentForTwoBookmarksAndAHalfThenItIsReplaced) {
  watching();
  EXPECT_EQ(transport.stream().idle_timeout, Duration(150s));
  // The transport finds it.
  loop.advance(150s);
  EXPECT_EQ(informer->quiet_for(), Duration(150s));
  end(make_error(ErrorCode::kTransient, "silent"));
  EXPECT_FALSE(informer->live());
  loop.advance(2s);
  EXPECT_THAT(transport.request().target, Not(HasSubstr("labelSelector")))
      << "any object tells the version";
  EXPECT_THAT(transport.request().target, HasSubstr("pods?limit=1"));
  answer(list_json(12));
  EXPECT_THAT(transport.stream().target, HasSubstr("resourceVersion=10"));
  open();
  EXPECT_TRUE(informer->live());
  EXPECT_LE(informer->quiet_for(), Duration(2s));
}

TEST_F(InformerTest, VersionsThatWentBackAreNoticedAfterAReconnectAndEverythingIsListedAnew) {
  watching();
  end(FakeTransport::lost("reset", false));
  loop.advance(2s);
  answer(list_json(5));
  EXPECT_THAT(transport.request().target, Not(HasSubstr("resourceVersion")));
  EXPECT_EQ(informer->time_travels(), 0u);
  std::uint64_t travels_in_handler = 0;
  on_change = [&] { travels_in_handler = informer->time_travels(); };
  answer(list_json(6, {object_json("a", 4, "x")}));
  EXPECT_EQ(travels_in_handler, 1u);
  EXPECT_THAT(reported, ElementsAre("a"));
  EXPECT_EQ(informer->store().get("x/a")->version, 4u);
  EXPECT_EQ(informer->version("x"), 6u);
}

TEST_F(InformerTest, EachNamespaceIsLiveByItself) {
  make({"x", "y"});
  start();
  ASSERT_EQ(transport.pending(), 2u);
  EXPECT_THAT(transport.request(0).target, HasSubstr("/namespaces/x/pods?"));
  answer(list_json(10, {object_json("a", 9, "x")}));
  EXPECT_FALSE(informer->synced());
  answer(list_json(20, {object_json("a", 19, "y")}));
  EXPECT_TRUE(informer->synced());
  const int before = progress;
  open(0);
  EXPECT_TRUE(informer->live());
  EXPECT_TRUE(informer->live("x"));
  EXPECT_FALSE(informer->live("y"));
  EXPECT_EQ(informer->closed(), 1);
  open(1);
  EXPECT_TRUE(informer->live("y"));
  EXPECT_EQ(informer->closed(), 0);
  EXPECT_EQ(progress, before + 2) << "each namespace that becomes live is progress";
  EXPECT_EQ(informer->version("x"), 10u);
  EXPECT_EQ(informer->version("y"), 20u);
  EXPECT_EQ(informer->version("z"), 0u);
  // One of them is listed anew, and is empty now.
  Error gone = make_error(ErrorCode::kGone, "gone");
  gone.http_status = 410;
  end(gone);
  answer(list_json(30));
  EXPECT_FALSE(informer->store().get("x/a"));
  EXPECT_TRUE(informer->store().get("y/a"));
}

TEST_F(InformerTest, ANamespaceThatFailsDoesNotBlindUsForTheOthers) {
  for (const int status : {403, 500, 503}) {
    SCOPED_TRACE(status);
    reported.clear();
    make({"x", "y"});
    start();
    transport.answer(status, R"({"kind":"Status","message":"no"})");
    loop.run_ready();
    EXPECT_EQ(informer->trouble("x"), "no");
    EXPECT_EQ(informer->trouble("y"), "");
    EXPECT_FALSE(informer->synced());
    answer(list_json(20, {object_json("a", 19, "y")}));
    open();
    EXPECT_TRUE(informer->synced());
    EXPECT_TRUE(informer->live());
    EXPECT_TRUE(informer->live("y"));
    EXPECT_FALSE(informer->live("x"));
    EXPECT_EQ(informer->closed(), 1);
    EXPECT_EQ(informer->version("x"), 0u);
    // It is tried again, and counts once it may be listed.
    loop.advance(std::chrono::minutes(1));
    answer(list_json(30, {object_json("b", 29, "x")}));
    EXPECT_THAT(reported, ElementsAre("+a", "+b"));
    open(1);
    EXPECT_TRUE(informer->live("x"));
    EXPECT_EQ(informer->closed(), 0);
    EXPECT_EQ(informer->version("x"), 30u);
    informer->stop();
    loop.run_ready();
  }
}

TEST_F(InformerTest, ANamespaceThatIsDeletedWithOurRightsKeepsWhatWasSeenOfIt) {
  make({"x", "y"});
  start();
  answer(list_json(10, {object_json("a", 9, "x")}));
  answer(list_json(20));
  open(0);
  open(1);
  Error forbidden = make_error(ErrorCode::kForbidden, "forbidden");
  forbidden.http_status = 403;
  end(forbidden);
  EXPECT_TRUE(informer->live());
  EXPECT_TRUE(informer->synced());
  EXPECT_FALSE(informer->live("x"));
  EXPECT_TRUE(informer->store().get("x/a"));
}

// A server that has just started forbids everything for a moment.
TEST_F(InformerTest, ANamespaceThatWasForbiddenIsLiveOnceItIsStreamed) {
  make({"x"}, /*streaming=*/true);
  start();
  Error forbidden = make_error(ErrorCode::kForbidden, "forbidden");
  forbidden.http_status = 403;
  end(forbidden);
  EXPECT_EQ(informer->closed(), 1);
  loop.advance(std::chrono::minutes(1));
  open();
  lines({bookmark_json(12, /*end=*/true)});
  EXPECT_EQ(informer->closed(), 0);
  EXPECT_TRUE(informer->synced());
  EXPECT_TRUE(informer->live());
}

TEST_F(InformerTest, WhereAllIsForbiddenNothingIsSynced) {
  make({"x", "y"});
  start();
  for (int i = 0; i < 2; ++i) transport.answer(403, R"({"kind":"Status","code":403})");
  loop.run_ready();
  EXPECT_FALSE(informer->synced());
  EXPECT_FALSE(informer->live());
  EXPECT_THAT(informer->trouble(), Not(testing::IsEmpty()));
}

TEST_F(InformerTest, AWiderSelectorIsListedConsistentlyAndCountsOnceItsListIsThere) {
  watching();
  EXPECT_EQ(informer->widened("x"), 0u);
  informer->widen({"app notin (c)", ""});
  loop.run_ready();
  EXPECT_FALSE(informer->live()) << "the old watch does not show the new objects";
  EXPECT_THAT(transport.request().target, HasSubstr("labelSelector=app%20notin%20%28c%29"));
  EXPECT_THAT(transport.request().target, Not(HasSubstr("resourceVersion")));
  EXPECT_EQ(informer->widened("x"), 0u);
  answer(list_json(20, {object_json("a", 9, "x"), object_json("b", 12, "x")}));
  EXPECT_THAT(reported, ElementsAre("+b"));
  EXPECT_EQ(informer->widened("x"), 1u);
  EXPECT_THAT(transport.stream().target, HasSubstr("notin"));
  open();
  EXPECT_TRUE(informer->live());
}

TEST_F(InformerTest, AListUnderWayBeginsAgainWithTheWiderSelector) {
  watching();
  informer->widen({"one", ""});
  loop.run_ready();
  informer->widen({"two", ""});
  loop.run_ready();
  ASSERT_EQ(transport.pending(), 2u);
  answer(list_json(20));
  EXPECT_EQ(informer->widened("x"), 0u) << "it lacks what the second one selects";
  EXPECT_TRUE(informer->store().get("x/a"));
  EXPECT_THAT(transport.request().target, HasSubstr("labelSelector=two"));
  answer(list_json(21, {object_json("b", 12, "x")}));
  EXPECT_EQ(informer->widened("x"), 2u);
}

TEST_F(InformerTest, EachNamespaceIsWiderOnceItsOwnListIsThere) {
  make({"x", "y"});
  informer->widen({"first", ""});
  start();
  EXPECT_THAT(transport.request().target, HasSubstr("labelSelector=first"));
  answer(list_json(10));
  EXPECT_EQ(informer->widened("x"), 1u);
  EXPECT_EQ(informer->widened("y"), 0u);
  answer(list_json(10));
  EXPECT_EQ(informer->widened("y"), 1u);
}

TEST_F(InformerTest, ANarrowerSelectorDropsObjectsWithoutAChangeAndGoesOnAtItsVersion) {
  watching();
  lines({event_json("ADDED", object_json("b", 11, "x"))});
  reported.clear();
  informer->narrow({"app notin (a)", ""},
                   [](const ObjectPtr& object) { return object->name != "a"; });
  loop.run_ready();
  EXPECT_TRUE(reported.empty()) << "it is not deleted";
  EXPECT_FALSE(informer->store().get("x/a"));
  EXPECT_TRUE(informer->store().get("x/b"));
  EXPECT_EQ(transport.pending(), 0u) << "nothing is listed";
  EXPECT_THAT(transport.stream().target, HasSubstr("notin"));
  EXPECT_THAT(transport.stream().target, HasSubstr("resourceVersion=11"));
  open();
  lines({event_json("ADDED", object_json("c", 12, "x"))});
  EXPECT_THAT(reported, ElementsAre("+c"));
}

TEST_F(InformerTest, AListUnderWayBringsNothingBackThatANarrowerSelectorDrops) {
  watching();
  informer->widen({"wide", ""});
  loop.run_ready();
  informer->narrow({"narrow", ""}, [](const ObjectPtr& object) { return object->name != "a"; });
  loop.run_ready();
  answer(list_json(20, {object_json("a", 9, "x")}));
  EXPECT_FALSE(informer->store().get("x/a"));
  EXPECT_THAT(transport.request().target, HasSubstr("labelSelector=narrow"));
  answer(list_json(21));
  EXPECT_EQ(informer->widened("x"), 1u);
}

TEST_F(InformerTest, AHandlerMayAskForARelist) {
  watching();
  on_change = [&] { informer->relist(); };
  lines({event_json("ADDED", object_json("b", 11, "x"))});
  EXPECT_EQ(transport.streams(), 0u);
  EXPECT_THAT(transport.request().target, HasSubstr("pods?limit=500"));
  on_change = nullptr;
  answer(list_json(15, {object_json("a", 9, "x")}));
  EXPECT_THAT(reported, ElementsAre("+b", "b-"));
}

TEST_F(InformerTest, AHandlerMayStopItAndNoneIsCalledAfterwards) {
  watching();
  on_change = [&] { informer->stop(); };
  lines({event_json("ADDED", object_json("b", 11, "x")),
         event_json("ADDED", object_json("c", 12, "x"))});
  EXPECT_THAT(reported, ElementsAre("+b"));
  EXPECT_EQ(progress, 0);
  EXPECT_FALSE(informer->live());
  EXPECT_EQ(transport.streams(), 0u);
  loop.advance(1h);
  EXPECT_EQ(transport.pending() + transport.streams(), 0u);
}

TEST_F(InformerTest, AnswersAfterItIsGoneHurtNobody) {
  make();
  start();
  informer.reset();
  answer(list_json(10, {object_json("a", 9, "x")}));
  EXPECT_TRUE(reported.empty());
  EXPECT_EQ(transport.streams(), 0u);
}

TEST_F(InformerTest, AStreamedListIsSwappedInAtItsEndMark) {
  make({}, /*streaming=*/true);
  start();
  EXPECT_THAT(transport.stream().target, HasSubstr("sendInitialEvents=true"));
  open();
  lines({event_json("ADDED", object_json("a", 9, "x")), bookmark_json(9)});
  EXPECT_TRUE(reported.empty());
  EXPECT_EQ(informer->version("x"), 0u);
  EXPECT_FALSE(informer->live());
  lines({bookmark_json(12, /*end=*/true)});
  EXPECT_THAT(reported, ElementsAre("+a"));
  EXPECT_TRUE(informer->synced());
  EXPECT_TRUE(informer->live());
  EXPECT_EQ(informer->version("x"), 12u);
  EXPECT_EQ(transport.history.size(), 1u) << "one request for list and watch";
}

TEST_F(InformerTest, AServerThatRefusesStreamedListsIsListedInPages) {
  make({}, /*streaming=*/true);
  start();
  transport.open_stream(0, 422, R"({"kind":"Status","code":422,"reason":"Invalid"})");
  loop.run_ready();
  EXPECT_THAT(transport.request().target, HasSubstr("resourceVersion=0&limit=500"));
  answer(list_json(10));
  EXPECT_TRUE(informer->synced());
}

TEST_F(InformerTest, WhatCannotBeDecodedIsCountedAndHurtsNothingElse) {
  make();
  start();
  answer(list_json(10, {R"({"metadata":{}})", object_json("a", 9, "x")}));
  open();
  lines({event_json("ADDED", R"({"metadata":{"resourceVersion":"11"}})"),
         event_json("ADDED", object_json("b", 12, "x"))});
  EXPECT_EQ(informer->undecodable(), 2u);
  EXPECT_EQ(informer->store().size(), 2u);
  EXPECT_EQ(informer->version("x"), 12u);
}

TEST_F(InformerTest, AShutDownClientIsNotHammered) {
  watching();
  client.shut_down();
  loop.run_ready();
  const std::size_t asked = transport.history.size();
  loop.advance(10s);
  EXPECT_FALSE(informer->live());
  EXPECT_EQ(transport.history.size(), asked);
  informer->stop();
  loop.run_ready();
}

// ---- A refresh.

TEST_F(InformerTest, ARefreshListsMetadataAloneAndReportsWhenItIsDone) {
  watching();
  EXPECT_TRUE(informer->fresh());
  informer->refresh();
  EXPECT_FALSE(informer->fresh()) << "from here on";
  loop.run_ready();
  EXPECT_THAT(transport.request().target, HasSubstr("limit=1"));
  answer(list_json(20));
  EXPECT_THAT(transport.stream(0).target, HasSubstr("resourceVersion=10"));
  open();
  short_watch_ends();
  loop.advance(1s);
  ASSERT_EQ(transport.pending(), 1u);
  EXPECT_THAT(transport.request().target, Not(HasSubstr("limit")));
  EXPECT_THAT(transport.request().target, HasSubstr("labelSelector=app"));
  EXPECT_THAT(test::header(transport.request().headers, "Accept"),
              HasSubstr("as=PartialObjectMetadataList"));
  progress = 0;
  answer(list_json(20, {object_json("a", 9, "x")}));
  EXPECT_TRUE(informer->fresh());
  EXPECT_EQ(progress, 1);
  EXPECT_THAT(reported, ElementsAre());
}

TEST_F(InformerTest, ARefreshWaitsForWhatTheWatchBrings) {
  watching();
  informer->refresh();
  loop.run_ready();
  answer(list_json(20));
  open();
  short_watch_ends();
  loop.advance(1s);
  answer(list_json(20, {object_json("a", 9, "x"), object_json("b", 18, "x")}));
  EXPECT_FALSE(informer->fresh());
  lines({event_json("ADDED", object_json("b", 18, "x"))});
  loop.advance(100ms);
  EXPECT_TRUE(informer->fresh());
  EXPECT_EQ(transport.pending(), 0u);
}

TEST_F(InformerTest, ARefreshIsDoneByAListThatBringsSomethingNew) {
  watching();
  informer->refresh();
  loop.run_ready();
  answer(list_json(20));
  transport.open_stream(0, 410, R"({"kind":"Status","code":410,"reason":"Expired"})");
  loop.run_ready();
  answer(list_json(20, {object_json("a", 9, "x"), object_json("b", 18, "x")}));
  EXPECT_FALSE(informer->fresh());
  open();
  EXPECT_TRUE(informer->fresh());
  informer->relist();
  loop.run_ready();
  EXPECT_FALSE(informer->fresh());
}

TEST_F(InformerTest, AStreamedRefreshIsDoneWithItsLastEvent) {
  make({}, /*streaming=*/true);
  start();
  open();
  lines({event_json("ADDED", object_json("a", 9, "x")), bookmark_json(10, /*end=*/true)});
  EXPECT_TRUE(informer->fresh());
  informer->relist();
  loop.run_ready();
  EXPECT_FALSE(informer->fresh());
  open();
  lines({event_json("ADDED", object_json("b", 19, "x")), bookmark_json(20, /*end=*/true)});
  EXPECT_TRUE(informer->fresh());
}

// ---- Memory.

int copies = 0;
int most_copies = 0;
struct Counted : kube::Object {
  Counted() { most_copies = std::max(most_copies, ++copies); }
  ~Counted() override { --copies; }
};

class ManyObjectsTest : public InformerTest {
 protected:
  static constexpr int kMany = 3000;
  static constexpr int kPage = 500;

  void make_counted(bool streaming) {
    copies = most_copies = 0;
    kube::Kind kind = pods();
    kind.decode = [](const JsonView& json) -> ObjectPtr {
      auto object = std::make_shared<Counted>();
      return kube::decode_meta(json, *object) ? object : nullptr;
    };
    Informer::Dependencies dependencies{loop, client, random, Log()};
    dependencies.streaming_lists = streaming;
    informer = std::make_unique<Informer>(dependencies, kind, std::vector<std::string>());
    start();
  }
  static std::string page_json(int from) {
    std::vector<std::string> items;
    for (int i = from; i < from + kPage; ++i) {
      items.push_back(object_json("o" + std::to_string(i), 5, "x"));
    }
    std::string text = list_json(10, items);
    if (from + kPage == kMany) return text;
    return text.replace(text.find("{\"resourceVersion\""), 1, R"({"continue":"more",)");
  }
  void pages() {
    for (int from = 0; from < kMany; from += kPage) answer(page_json(from));
  }
  void stream() {
    open();
    for (int from = 0; from < kMany; from += 100) {
      std::vector<std::string> events;
      for (int i = from; i < from + 100; ++i) {
        events.push_back(event_json("ADDED", object_json("o" + std::to_string(i), 5, "x")));
      }
      lines(events);
    }
    lines({bookmark_json(10, /*end=*/true)});
  }
};

TEST_F(ManyObjectsTest, ARelistInPagesHoldsNoSecondCopyOfWhatIsUnchanged) {
  make_counted(/*streaming=*/false);
  pages();
  ASSERT_EQ(informer->store().size(), static_cast<std::size_t>(kMany));
  open();
  informer->relist();
  loop.run_ready();
  pages();
  EXPECT_TRUE(informer->synced());
  EXPECT_EQ(copies, kMany);
  EXPECT_LE(most_copies, kMany + kPage);
}

TEST_F(ManyObjectsTest, AStreamedRelistHoldsNoSecondCopyOfWhatIsUnchanged) {
  make_counted(/*streaming=*/true);
  stream();
  ASSERT_EQ(informer->store().size(), static_cast<std::size_t>(kMany));
  informer->relist();
  loop.run_ready();
  stream();
  EXPECT_TRUE(informer->live());
  EXPECT_EQ(copies, kMany);
  EXPECT_LE(most_copies, kMany + kPage);
}

}  // namespace
}  // namespace holdfast::cache
