// Lists that arrive in pieces: cut wherever they like, they are read as if they came in one.
#include "client/kube/list_reader.h"

#include <gtest/gtest.h>

#include <string>

#include "core/json.h"

namespace holdfast::kube {
namespace {

std::shared_ptr<const Kind> pods() {
  auto kind = std::make_shared<Kind>();
  kind->name = "pods";
  kind->decode = [](const JsonView& json) -> ObjectPtr {
    auto object = std::make_shared<Object>();
    return decode_meta(json, *object) ? object : nullptr;
  };
  return kind;
}

std::string item(const std::string& name, const std::string& more = "") {
  return R"({"metadata": {"name": ")" + name + R"(", "uid": "u", "resourceVersion": "3"})" + more +
         "}";
}
std::string list(const std::string& items) {
  return R"({"kind": "PodList", "metadata": {"resourceVersion": "7", "continue": "c"}, "items": [)" +
         items + "]}";
}

// In pieces of this many bytes.
Result<ListPage> read(const std::string& text, std::size_t size) {
  ListReader reader(pods());
  for (std::size_t at = 0; at < text.size(); at += size) {
    if (!reader.read(std::string_view(text).substr(at, size))) break;
  }
  return reader.page();
}

TEST(ListReader, ReadsTheSameWhereverTheTextIsCut) {
  const std::string text =
      list(item("a", R"(, "spec": {"items": [{"x": "]}\"[{"}], "deep": [[{}]]})") + ",\n " +
           item("b", R"(, "text": "\\")") + ", 5, null, [1], " + item("c"));
  for (std::size_t size = 1; size <= text.size(); ++size) {
    const auto page = read(text, size);
    ASSERT_TRUE(page.ok()) << size << ": " << page.error().message;
    ASSERT_EQ(page->items.size(), 3u) << size;
    EXPECT_EQ(page->items[0]->name, "a");
    EXPECT_EQ(page->items[2]->name, "c");
    EXPECT_EQ(page->undecodable, 3);
    EXPECT_EQ(page->version, 7u);
    EXPECT_EQ(page->continue_token, "c");
  }
}

TEST(ListReader, MembersMayComeInAnyOrder) {
  const auto page = read(
      R"({"items":[)" + item("a") + R"(],"other":[{"b":1}],"metadata":{"resourceVersion":"9"}})",
      4);
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->items.size(), 1u);
  EXPECT_EQ(page->version, 9u);
}

TEST(ListReader, WhatIsNoJsonIsRefusedAlsoBetweenItsItems) {
  const std::string a = item("a");
  for (const std::string& items :
       {a + a, a + "5", "5" + a, "-" + a, a + ",", "," + a, a + "," + a.substr(1), a + "]",
        a.substr(0, a.size() - 2) + "]", a + R"(, {"x": tru})"}) {
    const auto page = read(list(items), 3);
    ASSERT_FALSE(page.ok()) << items;
    EXPECT_EQ(page.error().code, ErrorCode::kTransient) << items;
  }
}

TEST(ListReader, ATextThatBreaksOffIsRefused) {
  const std::string text = list(item("a") + "," + item("b"));
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(read(text.substr(0, size), 5).ok()) << size;
  }
}

TEST(ListReader, AnItemWithoutAnEndIsNotHeld) {
  ListReader reader(pods());
  ASSERT_TRUE(reader.read(R"({"items": [{"x": ")"));
  const std::string piece(1u << 20, 'x');
  int pieces = 0;
  while (reader.read(piece)) ASSERT_LT(++pieces, 17);
  EXPECT_EQ(reader.page().error().code, ErrorCode::kTerminal);
}

TEST(ListReader, NestingIsBounded) {
  ListReader reader(pods());
  EXPECT_FALSE(reader.read(R"({"items": [)" + std::string(kMaxJsonDepth, '[')));
  EXPECT_EQ(reader.page().error().code, ErrorCode::kTerminal);
}

}  // namespace
}  // namespace holdfast::kube
