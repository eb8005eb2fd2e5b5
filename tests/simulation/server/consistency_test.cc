// Whatever happens on the server, a client that lists and then watches sees the truth in the end,
// and sees each object's changes in order. Seeded.
#include <map>

#include "core/random.h"
#include "tests/simulation/server/fixture.h"

namespace holdfast::simulation {
namespace {

using State = std::map<std::string, std::string>;  // name -> resourceVersion

// Lists from where it may, watches from there, and starts anew when its watch has ended.
class Follower {
 public:
  explicit Follower(ApiServer& server) : server_(server) {}

  const State& state() const { return state_; }
  bool watches() const { return watches_; }
  std::string trouble;

  void start(bool streams, bool cached) {
    state_.clear();
    watches_ = true;
    if (streams) {
      open("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    } else {
      open("allowWatchBookmarks=true&resourceVersion=" + list(cached));
    }
  }

 private:
  std::string list(bool cached) {
    ApiRequest request;
    request.method = "GET";
    const std::string base = std::string(kPods) + "?labelSelector=x";
    request.target = base + (cached ? "&resourceVersion=0" : "&limit=2");
    while (true) {
      const Json list = Json::parse(server_.handle(request).body);
      for (const Json& item : list["items"]) keep(item["metadata"]);
      const std::string token = string_at(list["metadata"], "continue");
      if (token.empty()) return list["metadata"]["resourceVersion"];
      request.target = base + "&limit=2&continue=" + token;
    }
  }

  void open(const std::string& query) {
    ApiRequest request;
    request.method = "GET";
    request.target = std::string(kPods) + "?watch=1&labelSelector=x&" + query;
    WatchSink sink;
    sink.on_line = [this](const std::string& line) { take(Json::parse(line)); };
    sink.on_end = [this] { watches_ = false; };
    server_.watch(request, sink);
  }

  void take(const Json& event) {
    const std::string type = event["type"];
    if (type == "ERROR" || type == "BOOKMARK") return;
    const Json& metadata = event["object"]["metadata"];
    const std::string name = metadata["name"];
    const bool known = state_.count(name) > 0;
    if (known == (type == "ADDED")) trouble = type + " of " + name;
    if (known && std::stoull(state_[name]) >= version_of(metadata)) trouble = "old " + name;
    if (type == "DELETED") {
      state_.erase(name);
    } else {
      keep(metadata);
    }
  }

  static std::uint64_t version_of(const Json& metadata) {
    return std::stoull(metadata["resourceVersion"].get<std::string>());
  }
  void keep(const Json& metadata) { state_[metadata["name"]] = metadata["resourceVersion"]; }

  ApiServer& server_;
  State state_;
  bool watches_ = false;
};

class ConsistencyTest : public ApiServerTest {
 protected:
  void act(Random& random) {
    const std::string name(1, static_cast<char>('a' + random.below(6)));
    const std::string place = path(kPods, name);
    switch (random.below(12)) {
      case 0:
      case 1:
      case 2: {
        Json object = pod(name);
        if (random.below(2) == 0) object["metadata"]["labels"] = {{"x", "1"}};
        if (random.below(4) == 0) object = held(object);
        post(kPods, object);
        break;
      }
      case 3:
        patch(place, {{"metadata", {{"labels", {{"x", std::to_string(random.below(9))}}}}}});
        break;
      case 4:
        patch(place, {{"metadata", {{"labels", {{"x", nullptr}}}}}});
        break;
      case 5:
        patch(place, {{"metadata", {{"finalizers", nullptr}}}});
        break;
      case 6:
        remove(place);
        break;
      case 7:
        post(kLeases, lease("l" + std::to_string(server_.version())));
        break;
      case 8:
        if (random.below(8) == 0) server_.compact();
        break;
      case 9:
        if (random.below(8) == 0) server_.restart();
        break;
      case 10:
        server_.send_bookmarks();
        break;
      default:
        server_.advance_watch_cache_to(server_.watch_cache_version() + random.below(6));
    }
  }

  State truth() {
    State state;
    server_.for_each("pods", [&](const Json& object) {
      const Json& metadata = object["metadata"];
      if (at(metadata, "labels").contains("x")) {
        state[metadata["name"]] = metadata["resourceVersion"];
      }
    });
    return state;
  }
};

TEST_F(ConsistencyTest, WhoListsAndWatchesSeesTheTruthInTheEnd) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRandom random(seed);
    Follower follower(server_);
    for (int i = 0; i < 150; ++i) {
      if (!follower.watches()) follower.start(random.below(2) == 0, random.below(2) == 0);
      act(random);
    }
    server_.advance_watch_cache();
    if (!follower.watches()) follower.start(false, false);
    ASSERT_EQ(follower.trouble, "") << "seed " << seed;
    ASSERT_EQ(follower.state(), truth()) << "seed " << seed;
    // The follower hears nothing once it is gone.
    server_.restart(/*without_a_word=*/true);
  }
}

}  // namespace
}  // namespace holdfast::simulation
