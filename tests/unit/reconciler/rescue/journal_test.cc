// What would have been freed, and what became of it.
#include "reconciler/rescue/journal.h"

#include <gtest/gtest.h>

#include "reconciler/rescue/journal_text.h"

namespace holdfast::reconciler::testing {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

using Fate = Journal::Fate;

constexpr Time kNow{std::chrono::hours(500'000)};

JournalEntry due(const std::string& uid, Time at = kNow, const std::string& node = "node-1") {
  JournalEntry entry;
  entry.uid = uid;
  entry.node = node;
  entry.silent_since = at - seconds(60);
  entry.due = at;
  return entry;
}

TEST(Journal, APodHungUntilTheClusterEndedIt) {
  Journal journal;
  journal.write_down(due("a"));
  EXPECT_EQ(hung_for(journal.entries()[0], kNow + minutes(1)), minutes(2)) << "it still hangs";
  journal.close("a", Fate::kEnded, kNow + minutes(5));
  EXPECT_EQ(hung_for(journal.entries()[0], kNow + minutes(50)), minutes(6));
  const JournalSum sum = sum_of(journal.entries(), kNow + minutes(50));
  EXPECT_EQ(sum.pods, 1u);
  EXPECT_EQ(sum.hung, minutes(6));
  EXPECT_EQ(sum.with_holdfast, minutes(1));
  EXPECT_EQ(sum.hurt, 0u);
}

TEST(Journal, APodThatWentOnMakesTheVerdictFalse) {
  Journal journal;
  journal.write_down(due("a"));
  journal.write_down(due("b", kNow, "node-2"));
  journal.close("a", Fate::kWentOn, kNow + minutes(1));
  journal.close("a", Fate::kEnded, kNow + minutes(9));
  EXPECT_FALSE(journal.entries()[0].ended) << "it went on, and ended by itself";
  const JournalSum sum = sum_of(journal.entries(), kNow + minutes(10));
  EXPECT_EQ(sum.hurt, 1u);
  EXPECT_EQ(sum.pods, 1u) << "b";
}

TEST(Journal, AnEndedPodDoesNotGoOn) {
  Journal journal;
  journal.write_down(due("a"));
  journal.close("a", Fate::kEnded, kNow + minutes(1));
  journal.close("a", Fate::kWentOn, kNow + minutes(2));
  EXPECT_FALSE(journal.entries()[0].returned);
}

TEST(Journal, APodIsRecordedOnce) {
  Journal journal;
  journal.write_down(due("a"));
  const std::uint64_t changes = journal.changes();
  journal.write_down(due("a", kNow + minutes(1)));
  EXPECT_EQ(journal.entries().size(), 1u);
  EXPECT_EQ(journal.changes(), changes);
}

TEST(Journal, AnEndThatNobodySawCountsUpToWhenThePodWasDue) {
  Journal journal;
  journal.write_down(due("a"));
  journal.close("a", Fate::kUnseen, kNow + minutes(90));
  EXPECT_EQ(hung_for(journal.entries()[0], kNow + minutes(100)), minutes(1));
}

TEST(Journal, ItIsBoundedAndForgetsTheOldestThatIsOver) {
  Journal journal;
  for (std::size_t i = 0; i < Journal::kMostEntries; ++i) {
    EXPECT_TRUE(journal.write_down(due(std::to_string(i), kNow + seconds(i))));
  }
  journal.close("7", Fate::kEnded, kNow);
  EXPECT_TRUE(journal.write_down(due("next")));
  EXPECT_EQ(journal.entries().size(), Journal::kMostEntries);
  EXPECT_FALSE(journal.knows("7"));
  EXPECT_TRUE(journal.knows("0"));
}

// It would be due again, later.
TEST(Journal, AnOpenEntryGoesNeitherForANewOneNorByItsAge) {
  Journal journal;
  for (std::size_t i = 0; i < Journal::kMostEntries; ++i) {
    journal.write_down(due(std::to_string(i), kNow));
  }
  EXPECT_FALSE(journal.write_down(due("next")));
  journal.close("1", Fate::kEnded, kNow);
  journal.forget_before(kNow + minutes(1));
  EXPECT_TRUE(journal.knows("0"));
  EXPECT_FALSE(journal.knows("1"));
}

JournalEntry stays(const std::string& uid, Time at = kNow) {
  JournalEntry entry = due(uid, at);
  entry.stays = "Volumes";
  return entry;
}

TEST(Journal, APodThatStaysIsCountedByItself) {
  Journal journal;
  journal.write_down(stays("a"));
  journal.write_down(stays("b"));
  journal.close("b", Fate::kWentOn, kNow + minutes(1));
  const JournalSum sum = sum_of(journal.entries(), kNow + minutes(10));
  EXPECT_EQ(sum.pods + sum.hurt, 0u);
  EXPECT_EQ(sum.stay, (std::map<std::string, std::size_t>{{"Volumes", 2}}));
}

TEST(Journal, APodThatStaysMayBeFreedLater) {
  Journal journal;
  journal.write_down(stays("a"));
  EXPECT_FALSE(journal.is_decided("a"));
  EXPECT_FALSE(journal.write_down(stays("a", kNow + minutes(1)))) << "it is there";
  EXPECT_TRUE(journal.write_down(due("a", kNow + minutes(2))));
  ASSERT_EQ(journal.entries().size(), 1u);
  EXPECT_EQ(journal.entries()[0].due, kNow + minutes(2));
  EXPECT_TRUE(journal.is_decided("a"));
  journal.write_down(stays("b"));
  journal.close("b", Fate::kEnded, kNow);
  EXPECT_TRUE(journal.is_decided("b"));
  EXPECT_FALSE(journal.write_down(due("b"))) << "it is over";
}

TEST(Journal, APodThatStaysMayHangAgain) {
  Journal journal;
  journal.write_down(stays("a"));
  journal.close("a", Fate::kWentOn, kNow + minutes(1));
  EXPECT_FALSE(journal.is_decided("a"));
  EXPECT_TRUE(journal.write_down(stays("a", kNow + minutes(60))));
  ASSERT_EQ(journal.entries().size(), 1u);
  EXPECT_TRUE(journal.entries()[0].is_open());
  journal.close("a", Fate::kWentOn, kNow + minutes(61));
  EXPECT_TRUE(journal.write_down(due("a", kNow + minutes(90)))) << "its volumes are allowed now";
  journal.close("a", Fate::kWentOn, kNow + minutes(91));
  EXPECT_FALSE(journal.write_down(due("a", kNow + minutes(95)))) << "it would be gone";
}

TEST(Journal, APodThatStaysDisplacesNoOtherAndMakesRoomFirst) {
  Journal journal;
  for (std::size_t i = 0; i + 1 < Journal::kMostEntries; ++i) {
    journal.write_down(due(std::to_string(i), kNow));
  }
  journal.write_down(stays("a"));
  journal.close("0", Fate::kEnded, kNow);
  EXPECT_FALSE(journal.write_down(stays("b")));
  EXPECT_TRUE(journal.write_down(due("next")));
  EXPECT_FALSE(journal.knows("a"));
  EXPECT_TRUE(journal.knows("0"));
  EXPECT_EQ(journal.entries().size(), Journal::kMostEntries);
}

TEST(Journal, AReportLeavesOutWhatWasOverBefore) {
  const Time since = kNow - minutes(60);
  Journal journal;
  for (const char* const uid : {"over", "hangs", "ended since"}) {
    journal.write_down(due(uid, kNow - minutes(90)));
  }
  journal.close("over", Fate::kEnded, kNow - minutes(80));
  journal.close("ended since", Fate::kEnded, kNow - minutes(50));
  EXPECT_FALSE(is_of_time_since(journal.entries()[0], since));
  EXPECT_TRUE(is_of_time_since(journal.entries()[1], since));
  EXPECT_TRUE(is_of_time_since(journal.entries()[2], since));
}

TEST(JournalText, WhatIsWrittenIsReadAgain) {
  Journal journal;
  JournalEntry entry = due("a");
  entry.namespace_ = "media";
  entry.pod = "night-x7";
  entry.controller = "Job/night";
  journal.write_down(entry);
  journal.write_down(due("b", kNow, "node-2"));
  journal.close("a", Fate::kEnded, kNow + minutes(5));
  journal.close("b", Fate::kWentOn, kNow + minutes(1));
  journal.write_down(due("c", kNow + minutes(1)));
  journal.close("c", Fate::kUnseen, kNow + minutes(7));
  journal.write_down(stays("d", kNow + minutes(2)));
  const Journal read = decode_journal(encode_journal(journal));
  ASSERT_EQ(read.entries().size(), 4u);
  EXPECT_EQ(read.entries()[3].stays, "Volumes");
  EXPECT_EQ(read.entries()[2].stays, "");
  EXPECT_EQ(read.entries()[2].unseen, kNow + minutes(7));
  EXPECT_EQ(read.entries()[0].controller, "Job/night");
  EXPECT_EQ(read.entries()[0].silent_since, kNow - seconds(60));
  EXPECT_EQ(read.entries()[0].ended, kNow + minutes(5));
  EXPECT_EQ(read.entries()[1].returned, kNow + minutes(1));
}

TEST(JournalText, ItFitsIntoAConfigMapAndKeepsWhatIsOpenAndTheNewest) {
  Journal journal;
  for (std::size_t i = 0; i < Journal::kMostEntries; ++i) {
    JournalEntry entry = due(std::to_string(i), kNow + seconds(i));
    entry.pod = std::string(253, 'p');
    entry.node = std::string(253, 'n');
    entry.controller = "Job/" + std::string(253, 'j');
    journal.write_down(entry);
    if (i > 0) journal.close(entry.uid, Fate::kEnded, kNow + seconds(i));
  }
  const std::string text = encode_journal(journal);
  EXPECT_LE(text.size(), kMostJournalBytes);
  const Journal read = decode_journal(text);
  EXPECT_LT(read.entries().size(), Journal::kMostEntries);
  EXPECT_TRUE(read.knows("0")) << "it is open";
  EXPECT_FALSE(read.knows("1"));
  EXPECT_TRUE(read.knows(std::to_string(Journal::kMostEntries - 1)));
}

TEST(JournalText, MalformedEntriesAreLeftOut) {
  EXPECT_TRUE(decode_journal("").entries().empty());
  EXPECT_TRUE(decode_journal("{}").entries().empty());
  EXPECT_TRUE(decode_journal(R"([{"uid":"a"},{"due":"x","silentSince":"y","uid":"b"}, 7])")
                  .entries()
                  .empty());
}

}  // namespace
}  // namespace holdfast::reconciler::testing
