// Lists and watches, fresh and from a cache that lags; history that is gone.
#include "tests/simulation/server/fixture.h"

namespace holdfast::simulation {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kStreamed =
    "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

std::vector<std::string> names(const Json& list) {
  std::vector<std::string> found;
  for (const Json& item : list["items"]) found.push_back(item["metadata"]["name"]);
  return found;
}

std::string bookmark(std::uint64_t version) { return "BOOKMARK " + std::to_string(version); }

TEST_F(ApiServerTest, AReadAtVersionZeroShowsWhatTheCacheHasSeen) {
  post(kPods, pod("a"));
  server_.advance_watch_cache();
  const std::uint64_t seen = server_.version();
  post(kPods, pod("b"));
  EXPECT_THAT(names(get(kPods).body), ElementsAre("a", "b"));
  const Answer cached = get(std::string(kPods) + "?resourceVersion=0");
  EXPECT_THAT(names(cached.body), ElementsAre("a"));
  EXPECT_EQ(cached.version(), std::to_string(seen));
  EXPECT_EQ(get(path(kPods, "b")).status, 200);
  EXPECT_EQ(get(path(kPods, "b?resourceVersion=0")).status, 404);
}

TEST_F(ApiServerTest, AReadThatTheCacheHasNotReachedIsTooLarge) {
  const Answer made = post(kPods, pod("a"));
  const std::string query =
      std::string(kPods) + "?resourceVersionMatch=NotOlderThan&resourceVersion=" + made.version();
  const Answer early = get(query);
  EXPECT_EQ(early.status, 504);
  EXPECT_EQ(early.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
  EXPECT_THAT(early.body["message"], ::testing::HasSubstr("Too large resource version"));
  server_.advance_watch_cache();
  EXPECT_THAT(names(get(query).body), ElementsAre("a"));
}

TEST_F(ApiServerTest, PagesShowOneMoment) {
  for (const char* name : {"a", "b", "c"}) post(kPods, pod(name));
  const Answer first = get(std::string(kPods) + "?limit=2");
  EXPECT_THAT(names(first.body), ElementsAre("a", "b"));
  EXPECT_EQ(first.body["metadata"]["remainingItemCount"], 1);
  const std::string token = first.body["metadata"]["continue"];
  remove(path(kPods, "c"));
  post(kPods, pod("d"));
  const Answer second = get(std::string(kPods) + "?limit=2&continue=" + token);
  EXPECT_THAT(names(second.body), ElementsAre("c"));
  EXPECT_EQ(second.version(), first.version());

  server_.compact();
  const Answer late = get(std::string(kPods) + "?limit=2&continue=" + token);
  EXPECT_EQ(late.status, 410);
  const std::string go_on = late.body["metadata"]["continue"];
  EXPECT_THAT(names(get(std::string(kPods) + "?continue=" + go_on).body), ElementsAre("d"));
}

TEST_F(ApiServerTest, AWatchReportsWhatTheCacheHasSeen) {
  const auto watched = watch_from(kPods, server_.version());
  post(kPods, pod("a"));
  const std::uint64_t seen = server_.version();
  post(kPods, pod("b"));
  EXPECT_THAT(watched->lines, IsEmpty());
  server_.advance_watch_cache_to(seen);
  EXPECT_THAT(watched->lines, ElementsAre("ADDED a"));
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, ElementsAre("ADDED a", "ADDED b"));
}

TEST_F(ApiServerTest, AWatchFromAnOlderVersionIsSentWhatCameAfterIt) {
  post(kPods, pod("a"));
  const std::uint64_t version = server_.version();
  post(kPods, pod("b"));
  server_.advance_watch_cache();
  post(kPods, pod("c"));
  const auto watched = watch_from(kPods, version);
  EXPECT_THAT(watched->lines, ElementsAre("ADDED b"));
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, ElementsAre("ADDED b", "ADDED c"));
}

TEST_F(ApiServerTest, AClosedWatchIsSentNothing) {
  const auto watched = watch_from(kPods, server_.version());
  server_.close_watch(watched->opened.id);
  post(kPods, pod("a"));
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, IsEmpty());
  EXPECT_FALSE(watched->ended);
}

TEST_F(ApiServerTest, ASelectedWatchIsSentWhoEntersAndWhoLeaves) {
  const auto watched =
      watch(kPods, "labelSelector=x&resourceVersion=" + std::to_string(server_.version()));
  post(kPods, pod("a"));
  patch(path(kPods, "a"), {{"metadata", {{"labels", {{"x", "1"}}}}}});
  patch(path(kPods, "a"), {{"metadata", {{"labels", {{"x", "2"}}}}}});
  const Answer left = patch(path(kPods, "a"), {{"metadata", {{"labels", {{"x", nullptr}}}}}});
  patch(path(kPods, "a"), {{"metadata", {{"labels", {{"y", "1"}}}}}});
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, ElementsAre("ADDED a", "MODIFIED a", "DELETED a"));
  // As it was when it last belonged there, at the version at which it left.
  const Json& last = watched->events.back()["object"]["metadata"];
  EXPECT_EQ(last["labels"]["x"], "2");
  EXPECT_EQ(last["resourceVersion"], left.version());
}

TEST_F(ApiServerTest, AWatchFromNowhereBeginsWithTheState) {
  post(kPods, pod("a"));
  server_.advance_watch_cache();
  post(kPods, pod("b"));
  const auto unset = watch(kPods, "");
  const auto zero = watch(kPods, "resourceVersion=0");
  EXPECT_THAT(unset->lines, ElementsAre("ADDED a"));
  EXPECT_THAT(zero->lines, ElementsAre("ADDED a"));
  server_.advance_watch_cache();
  EXPECT_THAT(zero->lines, ElementsAre("ADDED a", "ADDED b"));
}

TEST_F(ApiServerTest, AStreamedListIsAsFreshAsItsRequestAndEndsWithABookmark) {
  post(kPods, pod("a"));
  const auto watched = watch(kPods, kStreamed);
  EXPECT_THAT(watched->lines, IsEmpty());
  const std::uint64_t asked = server_.version();
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, ElementsAre("ADDED a", bookmark(asked)));
  EXPECT_EQ(
      watched->events.back()["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"],
      "true");
  post(kPods, pod("b"));
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, ElementsAre("ADDED a", bookmark(asked), "ADDED b"));
}

TEST_F(ApiServerTest, BookmarksGoToThoseWhoAskedForThem) {
  const std::uint64_t start = server_.version();
  const auto with =
      watch(kPods, "allowWatchBookmarks=true&resourceVersion=" + std::to_string(start));
  const auto without = watch_from(kPods, start);
  post(kLeases, lease("l"));
  server_.send_bookmarks();
  server_.advance_watch_cache();
  server_.send_bookmarks();
  EXPECT_THAT(with->lines, ElementsAre(bookmark(start), bookmark(start + 1)));
  EXPECT_THAT(without->lines, IsEmpty());
}

TEST_F(ApiServerTest, CompactionEndsWhatItLeavesBehind) {
  const std::uint64_t start = server_.version();
  const auto behind = watch_from(kPods, start);
  const auto served = watch_from(kLeases, start);
  post(kPods, pod("a"));
  server_.compact();
  EXPECT_THAT(behind->lines, ElementsAre("ERROR 410"));
  EXPECT_TRUE(behind->ended);
  EXPECT_FALSE(served->ended);

  const auto old = watch_from(kPods, start);
  EXPECT_EQ(old->opened.answer.status, 200);
  EXPECT_THAT(old->lines, ElementsAre("ERROR 410"));
  EXPECT_THAT(watch_from(kPods, server_.version())->lines, IsEmpty());
  EXPECT_EQ(get(std::string(kPods) +
                "?resourceVersionMatch=Exact&resourceVersion=" + std::to_string(start))
                .status,
            410);
  post(kLeases, lease("l"));
  server_.advance_watch_cache();
  EXPECT_THAT(served->lines, ElementsAre("ADDED l"));
}

TEST_F(ApiServerTest, ARestartEndsWatchesAndForgetsTheCachesHistory) {
  const std::uint64_t start = server_.version();
  const auto watched = watch_from(kPods, start);
  post(kPods, pod("a"));
  server_.restart();
  EXPECT_TRUE(watched->ended);
  EXPECT_THAT(watched->lines, IsEmpty());
  EXPECT_EQ(server_.watch_cache_version(), server_.version());
  EXPECT_THAT(watch_from(kPods, start)->lines, ElementsAre("ERROR 410"));
  // etcd still has it.
  EXPECT_EQ(get(std::string(kPods) +
                "?resourceVersionMatch=Exact&resourceVersion=" + std::to_string(start))
                .status,
            200);
  const auto silent = watch_from(kPods, server_.version());
  server_.restart(/*without_a_word=*/true);
  EXPECT_FALSE(silent->ended);
}

TEST_F(ApiServerTest, ARestoreBringsBackObjectsAndTheirVersions) {
  const Answer kept = post(kJobs, job("a"));
  const std::string snapshot = server_.snapshot();
  post(kPods, owned(pod("p"), kept));
  patch(path(kJobs, "a"), {{"spec", {{"suspend", true}}}});
  const auto watched = watch_from(kPods, server_.version());
  const std::uint64_t last = server_.version();
  server_.restore(snapshot);
  EXPECT_TRUE(watched->ended);
  EXPECT_EQ(get(path(kJobs, "a")).body, kept.body);
  EXPECT_FALSE(exists("pods", "p"));
  EXPECT_LT(server_.version(), last);
  // A version of the future: a list says so, a watch waits for it.
  const std::string query =
      "?resourceVersionMatch=NotOlderThan&resourceVersion=" + std::to_string(last);
  EXPECT_EQ(get(kPods + query).status, 504);
  const auto waits = watch_from(kPods, last);
  while (server_.version() <= last) {
    post(kPods, pod("q" + std::to_string(server_.version())));
    server_.advance_watch_cache();
  }
  EXPECT_THAT(waits->lines, ElementsAre("ADDED q" + std::to_string(last)));
}

}  // namespace
}  // namespace holdfast::simulation
