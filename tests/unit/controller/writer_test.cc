#include "client/controller/writer.h"

#include "core/json.h"
#include "tests/unit/kube/client_fixture.h"

namespace holdfast::controller {
namespace {

using std::chrono::seconds;

class ScriptedGate : public Gate {
 public:
  bool holds(const Claim& claim) const override { return claim.tenure == tenure; }
  Duration time_left() const override { return left; }
  std::uint64_t tenure = 1;
  Duration left = seconds(8);
};

class WriterTest : public kube::ClientTest {
 protected:
  const Gate::Claim claim_{/*shard=*/3, /*tenure=*/1};
  ScriptedGate gate_;
  Writer writer_{client_, gate_};
};

TEST_F(WriterTest, EachKindOfWriteIsSent) {
  const auto post = start(writer_.post(claim_, "/a", "{}"));
  const auto put = start(writer_.put(claim_, "/b", "{}"));
  const auto patch = start(writer_.patch(claim_, "/c", "{}", {}));
  const auto del = start(writer_.del(claim_, "/d", "{}"));
  for (const char* const method : {"POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_EQ(transport_.request().method, method);
    transport_.answer(200, "{}");
  }
  loop_.run_ready();
  EXPECT_TRUE((*post)->ok() && (*put)->ok() && (*patch)->ok() && (*del)->ok());
}

TEST_F(WriterTest, NothingIsSentUnderAClaimOfAnEarlierTenure) {
  gate_.tenure = 2;
  const auto done = start(writer_.put(claim_, "/a", "{}"));
  EXPECT_EQ(transport_.pending(), 0u);
  ASSERT_TRUE(done->has_value() && !(*done)->ok());
  EXPECT_EQ((*done)->error().code, ErrorCode::kCancelled);
}

TEST_F(WriterTest, ARequestEndsBeforeItsClaim) {
  const auto done = start(writer_.put(claim_, "/a", "{}"));
  EXPECT_EQ(transport_.request().timeout, seconds(8));
  transport_.answer(200, "{}");
}

TEST_F(WriterTest, AShorterTimeoutOfTheCallerStays) {
  kube::CallOptions options;
  options.timeout = seconds(2);
  EXPECT_EQ(gate_.in_time(options).timeout, seconds(2));
  EXPECT_EQ(gate_.in_time().timeout, seconds(8));
}

TEST(Preconditions, ADeletionNamesTheObjectAndTheVersionIfThatMatters) {
  const auto named = [](const std::string& body) { return parse_json(body)->at("preconditions"); };
  EXPECT_EQ(named(preconditions("u", 7)), Json({{"uid", "u"}, {"resourceVersion", "7"}}));
  EXPECT_EQ(named(preconditions("u", std::nullopt)), Json({{"uid", "u"}}));
}

TEST(Preconditions, ADeletionGivesThePodsOwnGraceOrNone) {
  EXPECT_FALSE(parse_json(preconditions("u", 7))->contains("gracePeriodSeconds"));
  EXPECT_EQ(parse_json(preconditions("u", std::nullopt, 0))->at("gracePeriodSeconds"), 0);
}

}  // namespace
}  // namespace holdfast::controller
