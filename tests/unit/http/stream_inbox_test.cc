#include "client/http/stream_inbox.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace holdfast::http {
namespace {

using namespace std::chrono_literals;

const SteadyTime kNow{1h};

class InboxTest : public testing::Test {
 protected:
  InboxTest() { make(1000, 1000); }
  void make(std::size_t max_line, std::size_t max_waiting) {
    StreamInbox::Config config;
    config.max_line_bytes = max_line;
    config.max_waiting_bytes = max_waiting;
    config.decode = [](std::string_view line) -> std::any {
      if (line == "explode") throw std::runtime_error("unforeseen");
      return std::string(line);
    };
    config.wake = [this] { ++woken_; };
    inbox_ = std::make_unique<StreamInbox>(std::move(config));
  }
  bool feed(const std::string& bytes) {
    return inbox_->feed(
        bytes.data(), bytes.size(), [this] { ++resumed_; }, kNow);
  }
  std::vector<std::string> take() {
    std::vector<std::string> lines;
    for (std::any& line : inbox_->take().lines) lines.push_back(std::any_cast<std::string>(line));
    return lines;
  }
  using Lines = std::vector<std::string>;

  int woken_ = 0;
  int resumed_ = 0;
  std::unique_ptr<StreamInbox> inbox_;
};

TEST_F(InboxTest, GivesTheSameLinesHoweverTheBytesAreCut) {
  const std::string text = "one\ntwo\n\nthree\r\nfour\n";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    make(1000, 1000);
    inbox_->set_status(200);
    for (std::size_t i = 0; i < text.size(); i += size) EXPECT_TRUE(feed(text.substr(i, size)));
    EXPECT_EQ(take(), (Lines{"one", "two", "three\r", "four"})) << size;
    EXPECT_FALSE(inbox_->end_error().has_value());
  }
}

TEST_F(InboxTest, GivesTheSameFramesHoweverTheBytesAreCut) {
  const std::string text("\0\0\0\3one\0\0\0\0\0\0\0\4t\nwo\0\0\1\2", 23);
  const std::string third(258, 'x');
  const std::string all = text + third;
  for (std::size_t size = 1; size <= all.size(); ++size) {
    make(1000, 10'000);
    inbox_->set_status(200, StreamInbox::Framing::kFrames);
    for (std::size_t i = 0; i < all.size(); i += size) EXPECT_TRUE(feed(all.substr(i, size)));
    EXPECT_EQ(take(), (Lines{"one", "t\nwo", third})) << size;
    EXPECT_FALSE(inbox_->end_error().has_value());
  }
}

TEST_F(InboxTest, FramesThatCameBeforeTheHeadWaitForIt) {
  EXPECT_FALSE(feed(std::string("\0\0\0\1a\0\0", 7)));
  inbox_->set_status(200, StreamInbox::Framing::kFrames);
  EXPECT_EQ(take(), (Lines{"a"}));
  EXPECT_TRUE(inbox_->end_error().has_value()) << "it ended within a frame";
}

TEST_F(InboxTest, AFrameThatIsTooLongEndsItBeforeItsBytesAreKept) {
  inbox_->set_status(200, StreamInbox::Framing::kFrames);
  feed(std::string("\0\0\0\1a\x10\0\0\0", 9));
  const StreamInbox::Batch batch = inbox_->take();
  EXPECT_EQ(batch.lines.size(), 1u);
  ASSERT_TRUE(batch.error.has_value());
  EXPECT_EQ(batch.error->code, ErrorCode::kTerminal);
}

TEST_F(InboxTest, WakesTheLoopOnceUntilItTakes) {
  inbox_->set_status(200);
  feed("a\nb\n");
  feed("c\n");
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(take(), (Lines{"a", "b", "c"}));
  feed("d\n");
  EXPECT_EQ(woken_, 2);
}

TEST_F(InboxTest, BytesThatComeBeforeTheHeadWaitForIt) {
  EXPECT_FALSE(feed("one\ntw"));
  EXPECT_EQ(woken_, 0);
  EXPECT_FALSE(inbox_->paused()) << "it is the head that is waited for, not the loop";
  inbox_->resume();
  EXPECT_EQ(resumed_, 0);
  inbox_->set_status(200);
  EXPECT_EQ(resumed_, 1);
  EXPECT_TRUE(feed("o\n"));
  EXPECT_EQ(take(), (Lines{"one", "two"}));
}

TEST_F(InboxTest, AnotherStatusMakesTheBytesTheBody) {
  EXPECT_FALSE(feed("no"));
  inbox_->set_status(403);
  EXPECT_EQ(resumed_, 1);
  EXPECT_TRUE(feed("pe\n"));
  EXPECT_EQ(inbox_->body(), "nope\n");
  EXPECT_TRUE(take().empty());
}

TEST_F(InboxTest, ReadingPausesWhileTooMuchWaitsAndUntilItIsHandled) {
  make(1000, 10);
  inbox_->set_status(200);
  EXPECT_TRUE(feed("12345\n"));
  EXPECT_FALSE(feed("67890a\n"));
  EXPECT_TRUE(inbox_->paused());
  EXPECT_EQ(take().size(), 2u);
  EXPECT_EQ(resumed_, 0) << "taken, but not handled";
  inbox_->resume();
  EXPECT_EQ(resumed_, 1);
  EXPECT_FALSE(inbox_->paused());
  EXPECT_TRUE(feed("1\n"));
}

TEST_F(InboxTest, ALongLineEndsItAfterTheLinesBeforeIt) {
  make(10, 1000);
  inbox_->set_status(200);
  feed("1234567890\n");  // just fits
  feed("12345");
  feed("678901");
  feed("\nnever\n");
  const StreamInbox::Batch batch = inbox_->take();
  EXPECT_EQ(batch.lines.size(), 1u);
  ASSERT_TRUE(batch.error.has_value());
  EXPECT_EQ(batch.error->code, ErrorCode::kTerminal);
  EXPECT_EQ(inbox_->end_error()->code, ErrorCode::kTerminal);
}

TEST_F(InboxTest, ADecoderThatThrowsEndsIt) {
  inbox_->set_status(200);
  feed("fine\nexplode\nnever\n");
  const StreamInbox::Batch batch = inbox_->take();
  EXPECT_EQ(batch.lines.size(), 1u);
  ASSERT_TRUE(batch.error.has_value());
}

TEST_F(InboxTest, AnEndWithinALineIsAnError) {
  inbox_->set_status(200);
  feed("whole\nha");
  ASSERT_TRUE(inbox_->end_error().has_value());
  EXPECT_EQ(inbox_->end_error()->code, ErrorCode::kTransient);
  feed("lf\n");
  EXPECT_FALSE(inbox_->end_error().has_value());
}

TEST_F(InboxTest, ClosingLetsAWaitingReaderGoAndForgetsTheRest) {
  make(1000, 1);
  inbox_->set_status(200);
  EXPECT_FALSE(feed("12345\n"));
  inbox_->close();
  EXPECT_EQ(resumed_, 1);
  EXPECT_TRUE(feed("more\n"));
  EXPECT_TRUE(take().empty());
}

TEST_F(InboxTest, ClosingLetsAReaderGoThatWaitsForTheHead) {
  EXPECT_FALSE(feed("12345\n"));
  inbox_->close();
  EXPECT_EQ(resumed_, 1);
}

}  // namespace
}  // namespace holdfast::http
