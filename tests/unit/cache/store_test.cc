#include "client/cache/store.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "client/cache/store_update.h"
#include "client/kube/packed.h"
#include "tests/unit/cache/machine_support.h"

namespace holdfast::cache {
namespace {

using namespace test;

std::vector<std::string> by_uid(const kube::Object& object) { return {object.uid}; }

// "+a@5", "-a@5", "a@4>5" in order.
std::string described(const std::vector<Change>& changes) {
  std::string text;
  for (const Change& change : changes) {
    if (!text.empty()) text += ' ';
    const auto version = [](const ObjectPtr& object) { return std::to_string(object->version); };
    if (!change.before) {
      text += "+" + change.after->name + "@" + version(change.after);
    } else if (!change.after) {
      text += "-" + change.before->name + "@" + version(change.before);
    } else {
      text += change.after->name + "@" + version(change.before) + ">" + version(change.after);
    }
  }
  return text;
}

class StoreTest : public ::testing::Test {
 protected:
  std::string apply(const kube::WatchEvent& event) {
    std::vector<Change> changes;
    apply_event(store, event, changes);
    return described(changes);
  }
  std::string swap(std::vector<ObjectPtr> items, Trust trust = Trust::kMayBeOld,
                   std::string namespace_ = "") {
    std::vector<Change> changes;
    went_back = replace(store, {std::move(namespace_), std::move(items), trust}, changes);
    for (const Change& change : changes) EXPECT_TRUE(change.initial);
    return described(changes);
  }
  Store store;
  std::size_t went_back = 0;
};

TEST_F(StoreTest, IndexesFollowTheObjects) {
  store.add_index("uid", by_uid);
  store.put(object("a", 1, "u"));
  store.put(object("b", 1, "u"));
  EXPECT_EQ(store.by_index("uid", "u").size(), 2u);
  store.put(object("a", 2, "v"));
  ASSERT_EQ(store.by_index("uid", "u").size(), 1u);
  EXPECT_EQ(store.by_index("uid", "u")[0]->name, "b");
  EXPECT_EQ(store.by_index("uid", "v").size(), 1u);
  store.erase("ns/b");
  EXPECT_TRUE(store.by_index("uid", "u").empty());
  EXPECT_TRUE(store.by_index("none", "u").empty());
}

TEST_F(StoreTest, ReadersKeepWhatTheyGot) {
  store.put(object("a", 1));
  const ObjectPtr kept = store.get("ns/a");
  store.put(object("a", 2));
  EXPECT_EQ(kept->version, 1u);
  EXPECT_EQ(store.get("ns/a")->version, 2u);
}

TEST_F(StoreTest, EventsAddChangeAndDelete) {
  EXPECT_EQ(apply(added(object("a", 1))), "+a@1");
  EXPECT_EQ(apply(modified(object("a", 2))), "a@1>2");
  EXPECT_EQ(apply(deleted(object("a", 3))), "-a@3") << "the last state is the deletion's";
  EXPECT_EQ(store.size(), 0u);
}

TEST_F(StoreTest, AnEventThatIsOlderThanTheStoredObjectIsLeftOut) {
  apply(added(object("a", 5)));
  EXPECT_EQ(apply(modified(object("a", 4))), "");
  EXPECT_EQ(apply(modified(object("a", 5))), "");
  EXPECT_EQ(apply(deleted(object("a", 4))), "");
  EXPECT_EQ(store.get("ns/a")->version, 5u);
}

TEST_F(StoreTest, DeletedAndCreatedAgainAsOneChangeIsTwo) {
  apply(added(object("a", 5, "old")));
  EXPECT_EQ(apply(modified(object("a", 8, "new"))), "-a@5 +a@8");
  EXPECT_EQ(apply(deleted(object("a", 9, "old"))), "") << "that was the old one's end";
  EXPECT_EQ(store.get("ns/a")->uid, "new");
}

TEST_F(StoreTest, AReplaceDeletesWhatVanishedWithItsLastKnownStateAndKeepsTheListsOrder) {
  for (const char* name : {"a", "b", "c"}) store.put(object(name, 5));
  EXPECT_EQ(swap({object("d", 9), object("c", 5), object("a", 8)}), "-b@5 +d@9 a@5>8")
      << "c did not change";
  EXPECT_EQ(store.size(), 3u);
}

TEST_F(StoreTest, AReplaceShowsDeletionAndCreationWhenTheUidDiffers) {
  store.put(object("a", 5, "old"));
  EXPECT_EQ(swap({object("a", 9, "new")}), "-a@5 +a@9");
}

TEST_F(StoreTest, AReplaceOfOneNamespaceLeavesTheOthers) {
  store.put(object("a", 5, "u1", "x"));
  store.put(object("a", 5, "u2", "y"));
  EXPECT_EQ(swap({}, Trust::kMayBeOld, "x"), "-a@5");
  EXPECT_TRUE(store.get("y/a"));
}

TEST_F(StoreTest, AnOldListTakesNoObjectBack) {
  store.put(object("a", 5));
  EXPECT_EQ(swap({object("a", 4)}), "");
  EXPECT_EQ(went_back, 0u);
}

TEST_F(StoreTest, AConsistentListIsTheTruthEvenWhereItIsOlder) {
  store.put(object("a", 5));
  EXPECT_EQ(swap({object("a", 4)}, Trust::kConsistent), "a@5>4");
  EXPECT_EQ(went_back, 1u);
}

TEST_F(StoreTest, AfterATimeTravelEqualVersionsProveNothing) {
  store.put(object("a", 5));
  EXPECT_EQ(swap({object("a", 5)}, Trust::kConsistent), "");
  EXPECT_EQ(swap({object("a", 5)}, Trust::kSetBack), "a@5>5");
}

// Ten times as many objects may take ten times as long, not a hundred: the counts of index calls
// say so without a clock.
TEST_F(StoreTest, ReplaceAndIndexesAreLinearInTheNumberOfObjects) {
  std::size_t calls = 0;
  store.add_index("uid", [&](const kube::Object& object) {
    ++calls;
    return by_uid(object);
  });
  std::vector<ObjectPtr> items;
  for (int i = 0; i < 10000; ++i) items.push_back(object("p" + std::to_string(i), 5));
  swap(items);
  EXPECT_EQ(calls, 10000u);
  swap(items);
  EXPECT_EQ(calls, 10000u) << "what did not change is not indexed again";
  EXPECT_EQ(store.by_index("uid", "uid-p777").size(), 1u);
  EXPECT_EQ(calls, 10001u) << "a look-up asks of what it has found alone";
  swap({});
  EXPECT_EQ(calls, 20001u);
  EXPECT_EQ(store.size(), 0u);
}

// ---- Objects at rest.

struct Note : kube::Object {
  std::string text;
};

ObjectPtr packed(const std::string& name, std::uint64_t version, const std::string& text) {
  return std::make_shared<kube::PackedObject>(*object(name, version), text,
                                              [](const kube::PackedObject& packed) -> ObjectPtr {
                                                auto note = std::make_shared<Note>();
                                                static_cast<kube::Object&>(*note) = packed;
                                                note->text = packed.bytes;
                                                return note;
                                              });
}

std::string text_of(const ObjectPtr& object) { return static_cast<const Note&>(*object).text; }

TEST_F(StoreTest, APackedObjectIsReadWholeAndKeptPacked) {
  store.add_index("text", [](const kube::Object& object) {
    return std::vector<std::string>{static_cast<const Note&>(object).text};
  });
  const ObjectPtr first = packed("a", 5, "first");
  EXPECT_EQ(swap({first, packed("b", 5, "other")}), "+a@5 +b@5");
  EXPECT_EQ(store.stored(first->key()), first);
  EXPECT_EQ(text_of(store.get(first->key())), "first");
  ASSERT_EQ(store.by_index("text", "first").size(), 1u);
  EXPECT_EQ(text_of(store.by_index("text", "first")[0]), "first");
  std::set<std::string> seen;
  store.for_each([&](const ObjectPtr& one) { seen.insert(text_of(one)); });
  EXPECT_EQ(seen, (std::set<std::string>{"first", "other"}));
  EXPECT_EQ(swap({packed("a", 5, "first"), packed("b", 6, "more")}), "b@5>6") << "a is the same";
  EXPECT_EQ(store.stored(first->key()), first) << "a list needs no second copy";
  EXPECT_TRUE(store.by_index("text", "other").empty());
  swap({});
  EXPECT_EQ(store.size(), 0u);
  EXPECT_TRUE(store.by_index("text", "first").empty());
}

// ---- What is known already.

TEST(Share, AListOfWhatIsKnownIsReportedInTheStoresOwnObjects) {
  Store store;
  const ObjectPtr known = object("a", 5);
  store.put(known);
  const auto shared = [&](ObjectPtr listed) {
    share(store, listed);
    return listed == known;
  };
  EXPECT_TRUE(shared(object("a", 5)));
  EXPECT_FALSE(shared(object("a", 6)));
  EXPECT_FALSE(shared(object("a", 5, "other-uid")));
  EXPECT_FALSE(shared(object("b", 5)));
  EXPECT_FALSE(shared(nullptr));
}

TEST(CountBehind, CountsWhatTheWatchHasNotReported) {
  Store store;
  store.put(object("same", 5));
  store.put(object("older", 5));
  store.put(object("newer", 30));
  store.put(object("deleted", 6));
  store.put(object("young", 28));
  store.put(object("elsewhere", 6, "", "other"));
  const kube::ListPage metadata = test::page(
      25, {object("same", 5), object("older", 21), object("newer", 22), object("added", 23)});
  EXPECT_EQ(count_behind(store, "ns", 20, metadata), 3u) << "older, added and deleted";
  EXPECT_EQ(count_behind(store, "ns", 22, metadata), 2u)
      << "what the watch has passed is not doubted";
  EXPECT_EQ(count_behind(store, "ns", 25, metadata), 0u);
}

}  // namespace
}  // namespace holdfast::cache
