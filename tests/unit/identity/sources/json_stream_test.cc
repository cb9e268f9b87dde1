// SPDX-License-Identifier: Apache-2.0
#include "identity/sources/json_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuledger::identity {
namespace {

using Shape = JsonStream::Shape;
using Objects = std::vector<std::string>;

struct Read {
  Objects objects;
  bool ok = true;
  bool complete = false;
  uint64_t skipped = 0;
  std::string envelope;
};

Read read_in_pieces(Shape shape, const std::vector<std::string>& pieces, size_t longest = 1 << 20) {
  Read read;
  JsonStream stream(
      shape, [&](std::string_view object) { read.objects.emplace_back(object); }, longest);
  for (const std::string& piece : pieces) {
    if (!read.ok) break;
    read.ok = stream.feed(piece).ok();
  }
  read.complete = stream.complete();
  read.skipped = stream.skipped();
  read.envelope = stream.envelope();
  return read;
}

TEST(JsonStream, GivesTheSameObjectsWhereverTheInputIsCut) {
  const std::string first = R"({"a":"}{\"]\\","b":[{"c":[1,{}]}]})", second = R"({"items":[{}]})";
  struct Case {
    Shape shape;
    std::string text;
  };
  const std::vector<Case> cases = {
      {Shape::kObjects, " " + first + "\n" + second + "\r\n"},
      {Shape::kArray, "[" + first + " ,\n" + second + "]\n"},
      {Shape::kItems, R"({"items":[)" + first + "," + second + R"(],"metadata":{"resourceVersion":"]7"}})"},
      {Shape::kItems, R"({"kind":"items","a":{"items":[{"no":1}]},"items": [ )" + first + "," + second + "]}\n"},
  };
  for (const Case& each : cases) {
    for (size_t cut = 0; cut <= each.text.size(); ++cut) {
      for (size_t width : {size_t{0}, size_t{1}, size_t{7}}) {
        const size_t end = std::min(cut + width, each.text.size());
        const Read read = read_in_pieces(
            each.shape, {each.text.substr(0, cut), each.text.substr(cut, end - cut), each.text.substr(end)});
        ASSERT_EQ(read.objects, (Objects{first, second})) << each.text << " cut at " << cut;
        ASSERT_TRUE(read.complete);
      }
    }
  }
}

TEST(JsonStream, KeepsWhatIsAroundTheItems) {
  const Read read =
      read_in_pieces(Shape::kItems, {R"({"kind":"PodList","items":[{"x":1}, {}],"metadata":{"resourceVersion":"7"}})"});
  EXPECT_EQ(read.envelope, R"({"kind":"PodList","items":[],"metadata":{"resourceVersion":"7"}})");
  EXPECT_EQ(read_in_pieces(Shape::kItems, {R"({"items":null})"}).envelope, R"({"items":null})");
}

TEST(JsonStream, SkipsAnObjectThatIsTooLongAndGoesOn) {
  const std::string large = R"({"a":")" + std::string(5000, 'x') + R"("})";
  for (const size_t piece : {size_t{10'000}, size_t{64}, size_t{1}}) {
    std::vector<std::string> pieces;
    const std::string text = R"({"b":1})" + large + R"({"c":2})";
    for (size_t i = 0; i < text.size(); i += piece) pieces.push_back(text.substr(i, piece));
    const Read read = read_in_pieces(Shape::kObjects, pieces, 1000);
    EXPECT_EQ(read.objects, (Objects{R"({"b":1})", R"({"c":2})"}));
    EXPECT_EQ(read.skipped, 1u);
  }
}

TEST(JsonStream, SkipsAnObjectThatIsTooDeep) {
  const auto nested = [](size_t depth) { return R"({"a":)" + std::string(depth, '[') + std::string(depth, ']') + "}"; };
  const Read read = read_in_pieces(Shape::kObjects, {nested(63), nested(64), nested(500'000), nested(1)});
  EXPECT_EQ(read.objects, (Objects{nested(63), nested(1)}));
  EXPECT_EQ(read.skipped, 2u);
}

TEST(JsonStream, RefusesWhatHasAnotherShape) {
  const std::vector<std::pair<Shape, std::string>> wrong = {{Shape::kObjects, "[{}]"},
                                                            {Shape::kObjects, "{}x"},
                                                            {Shape::kObjects, "\"text\""},
                                                            {Shape::kObjects, "<html>"},
                                                            {Shape::kObjects, {"\0\x16\x03", 3}},
                                                            {Shape::kArray, "{}"},
                                                            {Shape::kArray, "[[{}]]"},
                                                            {Shape::kArray, "[1]"},
                                                            {Shape::kArray, "[]["},
                                                            {Shape::kItems, "[]"},
                                                            {Shape::kItems, R"({"items":[1]})"},
                                                            {Shape::kItems, R"({"items":[[]]})"},
                                                            {Shape::kItems, "{}{}"},
                                                            {Shape::kItems, "null"},
                                                            {Shape::kItems, "{\"a\":" + std::string(100, '[')}};
  for (const auto& [shape, text] : wrong) EXPECT_FALSE(read_in_pieces(shape, {text}).ok) << text;
}

TEST(JsonStream, BoundsWhatIsAroundTheItems) {
  EXPECT_FALSE(read_in_pieces(Shape::kItems, {R"({"a":")" + std::string(2 << 20, 'x')}).ok);
}

TEST(JsonStream, KnowsWhenSomethingIsMissing) {
  for (const auto& [shape, text] : std::vector<std::pair<Shape, std::string>>{{Shape::kObjects, "{}{"},
                                                                              {Shape::kArray, "[{}"},
                                                                              {Shape::kArray, ""},
                                                                              {Shape::kItems, R"({"items":[{})"},
                                                                              {Shape::kItems, R"({"items":[{}])"}}) {
    const Read read = read_in_pieces(shape, {text});
    EXPECT_TRUE(read.ok) << text;
    EXPECT_FALSE(read.complete) << text;
  }
}

}  // namespace
}  // namespace gpuledger::identity
