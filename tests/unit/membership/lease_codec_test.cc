// Member and shard Leases as people may have edited them: whatever stands there, a shard can be
// taken over and a member is who its Lease's name says.
#include "operator/membership/lease_codec.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/json.h"
#include "tests/support/json_document.h"

namespace holdfast::membership {
namespace {

Json lease_json(const std::string& name, const std::string& label, Json spec) {
  return {{"metadata",
           {{"name", name},
            {"namespace", "holdfast-system"},
            {"uid", "u-1"},
            {"resourceVersion", "7"},
            {"labels", {{kLeaseLabel, label}}},
            {"annotations", {{"holdfast.dev/shards", "32"}}}}},
          {"spec", std::move(spec)}};
}

std::shared_ptr<const CachedLease> decoded(const Json& json) {
  return std::static_pointer_cast<const CachedLease>(decode_lease(document(json)));
}

std::shared_ptr<const CachedLease> shard_of_holder(const std::string& holder) {
  return decoded(lease_json("holdfast-shard-3", kShardLease, {{"holderIdentity", holder}}));
}

TEST(LeaseCodec, AMemberIsWhoItsLeasesNameSays) {
  for (const char* written : {"", "another-bcdfg", "no/member"}) {
    const auto lease =
        decoded(lease_json("holdfast-member-a-bcdfg", kMemberLease, {{"holderIdentity", written}}));
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->holder, "a-bcdfg") << written;
  }
}

TEST(LeaseCodec, AHolderThatNoMemberCanBeIsNone) {
  EXPECT_EQ(shard_of_holder("a.example-bcdfg")->holder, "a.example-bcdfg");
  for (const std::string& holder :
       {std::string("foo/../bar baz%2F"), std::string("Upper"), std::string("new\nline"),
        std::string("caf\xc3\xa9"), std::string(300, 'x')}) {
    EXPECT_EQ(shard_of_holder(holder)->holder, "") << holder;
  }
}

TEST(LeaseCodec, AShardCanBeTakenHoweverOftenItIsSaidToHaveMoved) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const std::int64_t written : {std::int64_t{-1}, std::int64_t{5}, kMost, kMost + 1}) {
    const auto lease =
        decoded(lease_json("holdfast-shard-3", kShardLease, {{"leaseTransitions", written}}));
    EXPECT_GE(lease->transitions, 0) << written;
    EXPECT_LE(lease->transitions + 1, kMost) << written;
  }
}

TEST(LeaseCodec, AMemberThatStepsAsideSaysWhy) {
  LeaseWrite write;
  write.holder = "a-bcdfg";
  const auto read = [&] {
    Json json = *parse_json(member_lease_body(write, write.holder));
    json["metadata"]["uid"] = "u-1";
    json["metadata"]["resourceVersion"] = "7";
    return decoded(json);
  };
  EXPECT_EQ(read()->steps_aside, "");
  write.steps_aside = "pods cannot be watched: no";
  EXPECT_EQ(read()->steps_aside, "pods cannot be watched: no");
}

}  // namespace
}  // namespace holdfast::membership
