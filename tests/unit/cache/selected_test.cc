// An informer of a kind with a field selector: what becomes of an object that stops matching.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"
#include "tests/support/no_credentials.h"
#include "tests/unit/cache/watch_text.h"

namespace holdfast::cache {
namespace {

using holdfast::test::FakeTransport;
using holdfast::test::ManualLoop;
using holdfast::test::NoCredentials;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

kube::Kind open_jobs() {
  kube::Kind kind;
  kind.name = "jobs";
  kind.group_path = "/apis/x/v1";
  kind.plural = "jobs";
  kind.field_selector = "status.settled!=true";
  kind.decode = kube::decode_bare;
  return kind;
}

ObjectPtr object_of(const std::string& name, int version) {
  auto object = std::make_shared<kube::Object>();
  object->name = name;
  object->namespace_ = "x";
  object->uid = "u-" + name;
  object->version = static_cast<std::uint64_t>(version);
  return object;
}

class SelectedTest : public ::testing::Test {
 protected:
  SelectedTest() { make({}); }
  void make(const std::vector<std::string>& namespaces) {
    Informer::Dependencies dependencies{loop, client, random, Log()};
    dependencies.streaming_lists = false;
    informer = std::make_unique<Informer>(dependencies, open_jobs(), namespaces);
    informer->on_change([this](const Change& change) {
      const ObjectPtr& latest = change.after ? change.after : change.before;
      reported.push_back((change.before ? "" : "+") + latest->name +
                         (change.after ? "@" + std::to_string(latest->version) : "-"));
    });
    informer->on_leave([this](const ObjectPtr& stored, std::uint64_t version) {
      left.push_back(stored->name + "@" + std::to_string(version));
      return stays ? stays(stored) : nullptr;
    });
  }
  void answer(const std::string& body, int status = 200) {
    transport.answer(status, body);
    loop.run_ready();
  }
  void lines(const std::vector<std::string>& text) {
    transport.stream_lines(text, 0);
    loop.run_ready();
  }
  // Listed with "a" at version 9 and "b" at 8, watching from version 10.
  void watching() {
    informer->start();
    loop.run_ready();
    answer(list_json(10, {object_json("a", 9), object_json("b", 8)}));
    transport.open_stream(0);
    loop.run_ready();
    ASSERT_TRUE(informer->live());
    reported.clear();
  }
  std::uint64_t stored(const std::string& name) {
    const ObjectPtr object = informer->store().get("x/" + name);
    return object ? object->version : 0;
  }

  ManualLoop loop;
  SeededRandom random{1};
  FakeTransport transport{loop};
  NoCredentials credentials{loop};
  kube::Client client{{loop, transport, credentials, random, Log(), {}}};
  std::unique_ptr<Informer> informer;
  std::function<ObjectPtr(const ObjectPtr&)> stays;
  std::vector<std::string> reported;
  std::vector<std::string> left;
};

TEST_F(SelectedTest, ItAsksForWhatIsSelectedAlone) {
  informer->start();
  loop.run_ready();
  EXPECT_THAT(transport.request().target, HasSubstr("fieldSelector=status.settled!=true"));
}

TEST_F(SelectedTest, WhatLeavesMayStayAsItsReaderSays) {
  watching();
  stays = [](const ObjectPtr&) { return object_of("a", 12); };
  lines({event_json("DELETED", object_json("a", 12))});
  EXPECT_THAT(left, ElementsAre("a@12"));
  EXPECT_THAT(reported, ElementsAre("a@12")) << "a change, and no deletion";
  EXPECT_TRUE(informer->is_kept("x/a"));
  EXPECT_EQ(informer->version("x"), 12u);
}

TEST_F(SelectedTest, WhatLeavesMayStayAsItWasUntilItIsRead) {
  watching();
  stays = [](const ObjectPtr& stored) { return stored; };
  lines({event_json("DELETED", object_json("a", 12))});
  EXPECT_THAT(reported, IsEmpty());
  EXPECT_EQ(stored("a"), 9u);
  informer->drop("x/a");
  EXPECT_THAT(reported, ElementsAre("a-"));
  EXPECT_EQ(stored("a"), 0u);
}

TEST_F(SelectedTest, WhatLeavesIsGoneIfNobodyWantsIt) {
  watching();
  lines({event_json("DELETED", object_json("a", 12))});
  EXPECT_THAT(reported, ElementsAre("a-"));
  EXPECT_FALSE(informer->is_kept("x/a"));
}

TEST_F(SelectedTest, OnlyWhatIsKeptCanBeDropped) {
  watching();
  informer->drop("x/a");
  EXPECT_THAT(reported, IsEmpty()) << "the watch has it";
  EXPECT_EQ(stored("a"), 9u);
}

TEST_F(SelectedTest, WhatAReadHasShownStaysThroughLists) {
  watching();
  informer->keep(object_of("old", 4));
  EXPECT_THAT(reported, ElementsAre("+old@4"));
  informer->relist();
  loop.run_ready();
  answer(list_json(20, {object_json("a", 9), object_json("b", 8)}));
  EXPECT_THAT(left, IsEmpty()) << "it was kept before";
  EXPECT_EQ(stored("old"), 4u);
  EXPECT_THAT(reported, ElementsAre("+old@4"));
}

TEST_F(SelectedTest, WhatAListLacksHasLeftToo) {
  watching();
  stays = [](const ObjectPtr& stored) { return stored->name == "a" ? stored : nullptr; };
  informer->relist();
  loop.run_ready();
  answer(list_json(20));
  EXPECT_THAT(left, ::testing::UnorderedElementsAre("a@0", "b@0"));
  EXPECT_THAT(reported, ElementsAre("b-"));
  EXPECT_TRUE(informer->is_kept("x/a"));
}

TEST_F(SelectedTest, WhatIsWatchedAgainIsNoLongerKept) {
  watching();
  stays = [](const ObjectPtr& stored) { return stored; };
  lines({event_json("DELETED", object_json("a", 12)), event_json("ADDED", object_json("a", 13))});
  EXPECT_FALSE(informer->is_kept("x/a"));
  EXPECT_EQ(stored("a"), 13u);
  stays = nullptr;
  lines({event_json("DELETED", object_json("a", 14))});
  EXPECT_EQ(stored("a"), 0u);
}

TEST_F(SelectedTest, ItIsWatchedAgainAlsoIfItWasReadBefore) {
  watching();
  stays = [](const ObjectPtr& stored) { return stored; };
  lines({event_json("DELETED", object_json("a", 12))});
  informer->keep(object_of("a", 13));
  EXPECT_TRUE(informer->is_kept("x/a"));
  lines({event_json("ADDED", object_json("a", 13))});
  EXPECT_FALSE(informer->is_kept("x/a"));
}

TEST_F(SelectedTest, AnOldReadDoesNotReplaceWhatIsStored) {
  watching();
  informer->keep(object_of("a", 7));
  EXPECT_THAT(reported, IsEmpty());
  EXPECT_EQ(stored("a"), 9u);
  EXPECT_FALSE(informer->is_kept("x/a"));
}

TEST_F(SelectedTest, AnotherSelectorOfFieldsIsListedAndTheOldOneNoMore) {
  watching();
  informer->widen({"", "status.settled!=true,status.shard!=1-of-2"});
  loop.run_ready();
  EXPECT_THAT(transport.request().target, HasSubstr("status.shard!=1-of-2"));
}

TEST_F(SelectedTest, WhatIsSelectedNoMoreMayBeReportedAsGone) {
  watching();
  informer->keep(object_of("a", 12));
  reported.clear();
  const std::vector<ObjectPtr> dropped =
      informer->narrow({"", "status.settled!=true,status.shard!=1-of-2"},
                       [](const ObjectPtr& object) { return object->name == "b"; });
  EXPECT_THAT(reported, IsEmpty());
  EXPECT_THAT(left, IsEmpty());
  EXPECT_EQ(stored("a"), 0u);
  EXPECT_FALSE(informer->is_kept("x/a"));
  ASSERT_EQ(dropped.size(), 1u);
  informer->report_gone(dropped[0]);
  EXPECT_THAT(reported, ElementsAre("a-"));
}

TEST_F(SelectedTest, TheSameSelectorAgainListsNothingAndDropsNothing) {
  watching();
  const std::string same = "status.settled!=true";
  informer->widen({"", same});
  loop.run_ready();
  EXPECT_EQ(informer->widened("x"), 1u);
  EXPECT_EQ(transport.pending(), 0u);
  EXPECT_THAT(informer->narrow({"", same}, [](const ObjectPtr&) { return false; }), IsEmpty());
  EXPECT_EQ(stored("a"), 9u);
}

// As if a selector that is too long selected more than the one before.
TEST_F(SelectedTest, ASelectorThatTheListDidNotHaveIsListedAlsoIfItIsInUseAlready) {
  watching();
  const std::string other = "status.shard!=none";
  informer->narrow({"", other}, [](const ObjectPtr&) { return true; });
  loop.run_ready();
  ASSERT_EQ(transport.pending(), 0u) << "the watch goes on with it";
  informer->widen({"", other});
  loop.run_ready();
  EXPECT_EQ(informer->widened("x"), 0u);
  ASSERT_EQ(transport.pending(), 1u);
  answer(list_json(20, {object_json("a", 9), object_json("b", 8)}));
  EXPECT_EQ(informer->widened("x"), 1u);
}

constexpr const char* kUnknownField =
    R"({"kind":"Status","status":"Failure","reason":"BadRequest","code":400,)"
    R"("message":"field label not supported: status.settled"})";

TEST_F(SelectedTest, IfTheServerDoesNotKnowTheFieldEverythingIsWatchedAndItIsTriedAgain) {
  informer->start();
  loop.run_ready();
  answer(kUnknownField, 400);
  EXPECT_TRUE(informer->is_unselected());
  informer->widen({"", "status.settled!=true,status.shard!=1-of-2"});
  EXPECT_TRUE(informer->is_unselected()) << "it is for the next try";
  loop.advance(std::chrono::seconds(30));
  EXPECT_THAT(transport.request().target, Not(HasSubstr("fieldSelector")));
  answer(list_json(10, {object_json("a", 9)}));
  EXPECT_EQ(stored("a"), 9u);
  informer->narrow({"", "status.settled!=true,status.shard!=2-of-2"},
                   [](const ObjectPtr&) { return false; });
  EXPECT_EQ(stored("a"), 9u) << "the watch goes on to show it";
  transport.open_stream(0);
  loop.run_ready();
  loop.advance(std::chrono::seconds(60));
  EXPECT_THAT(transport.request().target, HasSubstr("fieldSelector"));
  EXPECT_THAT(transport.request().target, HasSubstr("limit=1"));
  answer(list_json(11, {object_json("a", 9)}));
  EXPECT_FALSE(informer->is_unselected());
  EXPECT_THAT(transport.request().target, HasSubstr("status.shard!=2-of-2"));
}

TEST_F(SelectedTest, IfTheServerOfOneNamespaceDoesNotKnowTheFieldTheOthersAreListedWithoutItToo) {
  make({"x", "y"});
  informer->widen({"", "status.settled!=true"});
  informer->start();
  loop.run_ready();
  transport.answer_at(1, 200, list_json(10));
  loop.run_ready();
  transport.open_stream(0);
  loop.run_ready();
  answer(kUnknownField, 400);
  EXPECT_EQ(transport.streams(), 0u);
  ASSERT_EQ(transport.pending(), 1u);
  EXPECT_THAT(transport.request().target, HasSubstr("namespaces/y"));
  EXPECT_THAT(transport.request().target, Not(HasSubstr("fieldSelector")));
  // It is not taken for one that selects.
  informer->widen({"", "status.settled!=true"});
  EXPECT_EQ(informer->widened("y"), 1u);
}

TEST_F(SelectedTest, AWatchMayShowThatTheServerDoesNotKnowTheField) {
  watching();
  informer->narrow({"", "status.settled!=true,status.shard!=1-of-2"},
                   [](const ObjectPtr&) { return true; });
  loop.run_ready();
  transport.open_stream(0, 400, kUnknownField);
  loop.run_ready();
  EXPECT_TRUE(informer->is_unselected());
  loop.advance(std::chrono::seconds(30));
  EXPECT_THAT(transport.request().target, Not(HasSubstr("fieldSelector")));
  EXPECT_THAT(transport.request().target, HasSubstr("limit=500")) << "everything is listed";
}

}  // namespace
}  // namespace holdfast::cache
