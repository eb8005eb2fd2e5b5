// Work that hangs keeps nobody.
#include "agent/base/file_thread.h"

#include <future>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

namespace holdfast::agent {
namespace {

class FileThreadRule : public ::testing::Test {
 protected:
  boost::asio::io_context io{1};
  const boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
      io.get_executor()};
};

TEST_F(FileThreadRule, WorkRunsOnItsThreadAndWhatItReturnsOnTheLoop) {
  FileThread files(io);
  const std::thread::id loop = std::this_thread::get_id();
  std::thread::id worked = loop;
  std::thread::id notified;
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(files.busy());
    files.run([&]() -> FileThread::Then {
      worked = std::this_thread::get_id();
      return [&] {
        notified = std::this_thread::get_id();
        EXPECT_FALSE(files.busy()) << "more can follow at once";
      };
    });
    ASSERT_TRUE(files.busy());
    io.run_one();
    EXPECT_NE(worked, loop);
    EXPECT_EQ(notified, loop);
  }
}

TEST_F(FileThreadRule, WorkThatHangsOutlivesItsOwnerAndNotifiesNobody) {
  std::promise<void> began;
  std::promise<void> hangs;
  auto freed = std::make_shared<std::promise<void>>();
  bool notified = false;
  {
    FileThread files(io);
    files.run([&, until = hangs.get_future().share(), freed]() -> FileThread::Then {
      began.set_value();
      until.wait();
      freed->set_value();
      return [&notified] { notified = true; };
    });
    EXPECT_TRUE(files.busy());
    began.get_future().wait();
  }
  hangs.set_value();
  freed->get_future().wait();
  io.poll();
  EXPECT_FALSE(notified);
}

TEST_F(FileThreadRule, OneThatWasNeverUsedHasNoThread) { const FileThread files(io); }

}  // namespace
}  // namespace holdfast::agent
