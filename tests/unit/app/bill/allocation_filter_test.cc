// SPDX-License-Identifier: Apache-2.0
#include "app/bill/allocation_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gpuledger::app {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bool keeps(std::string_view filter) {
  const std::map<std::string, std::string> train = {{"cluster", "east"},
                                                    {"node", "gpu-1"},
                                                    {"namespace", "research"},
                                                    {"pod", "train-0"},
                                                    {"label:app.io/team", "vision"}};
  const auto parsed = parse_allocation_filter(filter);
  EXPECT_TRUE(parsed) << filter << ": " << parsed.error().message;
  return parsed && parsed->matches([&](const std::string& property) {
    const auto found = train.find(property);
    return found == train.end() ? std::string() : found->second;
  });
}

std::string filter_error(std::string_view filter) {
  const auto parsed = parse_allocation_filter(filter);
  return parsed ? "" : parsed.error().message;
}

TEST(AllocationFilter, ComparesInEachWay) {
  for (const char* yes : {R"(namespace:"research")", R"(namespace!:"web")", R"(pod~:"rain")", R"(pod!~:"Rain")",
                          R"(pod<~:"train")", R"(pod!<~:"rain")", R"(pod~>:"-0")", R"(pod!~>:"-1")",
                          R"(label[app.io/team]:"vision")", R"(user:"__unallocated__")", R"(user:"")"})
    EXPECT_TRUE(keeps(yes)) << yes;
  for (const char* no : {R"(namespace:"Research")", R"(namespace!:"research")", R"(pod~:"eval")", R"(pod!~:"rain")",
                         R"(pod<~:"rain")", R"(pod!<~:"train")", R"(pod~>:"train")", R"(pod!~>:"-0")",
                         R"(label[team]:"vision")", R"(namespace:"__unallocated__")"})
    EXPECT_FALSE(keeps(no)) << no;
}

TEST(AllocationFilter, JoinsValuesAndComparisons) {
  for (const char* yes :
       {R"(namespace:"web","research")", R"(namespace!:"web","search")", R"(namespace:"research"+pod:"train-0")",
        R"(namespace:"web"|pod:"train-0"|node:"x")", R"((namespace:"web"|node<~:"gpu")+(cluster:"east"))",
        " namespace : \"research\" \n + ( pod!:\"x\" ) "})
    EXPECT_TRUE(keeps(yes)) << yes;
  for (const char* no : {R"(namespace:"web","search")", R"(namespace!:"web","research")",
                         R"(namespace:"research"+pod:"eval-0")", R"((namespace:"web"|node<~:"gpu")+cluster:"west")"})
    EXPECT_FALSE(keeps(no)) << no;
}

TEST(AllocationFilter, LooksAPropertyUpOncePerComparison) {
  int asked = 0;
  const auto filter = parse_allocation_filter(R"(pod!:"a","b","c"+node~:"d","e")");
  EXPECT_FALSE(filter->matches([&](const std::string&) {
    ++asked;
    return std::string("x");
  }));
  EXPECT_EQ(asked, 2);
}

TEST(AllocationFilter, HasNoMoreThanAHundredValues) {
  std::string values = R"(pod:"a")", comparisons = R"(pod:"a")";
  for (int i = 1; i < 100; ++i) {
    values += R"(,"a")";
    comparisons += R"(+pod:"a")";
  }
  for (const std::string& most : {values, comparisons}) {
    EXPECT_EQ(filter_error(most), "");
    EXPECT_EQ(filter_error(most + R"(+node:"b")"), "filter: has more than 100 values");
  }
}

TEST(AllocationFilter, ThereIsNoPartOfNone) {
  for (const std::string sign : {"~:", "!~:", "<~:", "!<~:", "~>:", "!~>:"})
    for (const std::string none : {R"("")", R"("__unallocated__")", R"("a","")"})
      EXPECT_THAT(filter_error("pod" + sign + none), HasSubstr("needs : or !: before it")) << sign << none;
  EXPECT_EQ(filter_error(R"(pod!:"a",""+node:"__unallocated__")"), "");
}

TEST(AllocationFilter, NamesItsProperties) {
  std::set<std::string> names;
  parse_allocation_filter(R"(node:"a"+(label[team]:"b"|node:"c"))")->add_properties_to(names);
  EXPECT_THAT(names, ElementsAre("label:team", "node"));
}

TEST(AllocationFilter, RefusesWhatItCannotAnswer) {
  for (const char* name : {"controllerName", "controllerKind", "container", "services", "annotation", "label", "team"})
    EXPECT_THAT(filter_error(std::string(name) + ":\"x\""),
                HasSubstr("filter: \"" + std::string(name) +
                          "\" is not known here (cluster, node, namespace, pod, label[NAME]"));
  for (const char* wrong :
       {"", "namespace", "namespace:", "namespace:research", R"(namespace:"a)", R"(namespace="a")", R"(namespace:"a",)",
        R"(namespace:"a" pod:"b")", R"(namespace:"a"+)", R"((namespace:"a")", R"(namespace:"a"))",
        R"(namespace:"a"+pod:"b"|node:"c")", R"(label[]:"a")", R"(label[a"b]:"c")", R"(label[team:"a")",
        R"(namespace!!:"a")", R"(namespace<:"a")", R"(pod:"a\"b")"})
    EXPECT_THAT(filter_error(wrong), HasSubstr("filter: cannot be read at ")) << wrong;
  EXPECT_THAT(filter_error(R"(namespace:"a" pod:"b")"), HasSubstr("+ is %2B in an address"));
  EXPECT_THAT(filter_error(std::string(100, '(') + R"(pod:"a")" + std::string(100, ')')),
              HasSubstr("too many parentheses"));
}

}  // namespace
}  // namespace gpuledger::app
