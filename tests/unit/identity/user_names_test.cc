// SPDX-License-Identifier: Apache-2.0
#include "identity/user_names.h"

#include <gtest/gtest.h>

#include "identity/proc_reader.h"
#include "identity/resolver.h"
#include "resolver_batch.h"
#include "support/proc_tree.h"

namespace gpuledger::identity {
namespace {

TEST(ParsePasswd, FirstNameOfAUidAndNoGarbage) {
  const auto names = parse_passwd(
      "root:x:0:0:root:/root:/bin/bash\n"
      "# a remark:x:5:\n"
      "toor:x:0:0::/root:/bin/sh\n"
      "+nis::::::\n"
      "short\n"
      "bad:x:-1:0::/:\n"
      "ana:x:2001:2001:Ana:/home/ana:/bin/zsh");
  EXPECT_EQ(names.size(), 2u);
  EXPECT_EQ(names.at("0"), "root");
  EXPECT_EQ(names.at("2001"), "ana");
  EXPECT_TRUE(parse_passwd("").empty());
}

TEST(IsOnHost, AServiceOrAUserAndNoContainer) {
  EXPECT_TRUE(is_on_host("0::/system.slice/gpu-ledger.service\n"));
  EXPECT_TRUE(is_on_host("0::/user.slice/user-1000.slice/session-2.scope\n"));
  const std::string id(64, 'a');
  for (const std::string& cgroup :
       {std::string(""), std::string("0::/\n"), std::string("0::/../../x\n"),
        "0::/system.slice/docker-" + id + ".scope\n", "0::/kubepods/besteffort/pod1-2/" + id + "\n"}) {
    EXPECT_FALSE(is_on_host(cgroup)) << cgroup;
  }
}

TEST(UserNames, OfTheHostsFirstProcess) {
  testing::ProcTree tree;
  EXPECT_EQ(UserNames::find_file(tree.root()), "") << "nothing tells whose /etc/passwd would be read";
  tree.write("1/root/etc/passwd", "ana:x:2001:1::/:\n");
  const std::string file = tree.root() + "/1/root/etc/passwd";
  EXPECT_EQ(UserNames::find_file(tree.root()), file);
  UserNames names(file);
  EXPECT_EQ(names.name_of("2001"), "ana");
  EXPECT_EQ(names.name_of("2002"), "");
  EXPECT_EQ(names.name_of(""), "");
  tree.write("1/root/etc/passwd", "ana:x:2001:1::/:\nbenjamin:x:2002:1::/:\n");
  EXPECT_EQ(names.name_of("2002"), "benjamin") << "a new user";
  // In a user namespace uids are others than the host's.
  tree.write("self/uid_map", "         0       1000          1\n");
  EXPECT_EQ(UserNames::find_file(tree.root()), "");
  tree.write("self/uid_map", "         0          0 4294967295\n");
  EXPECT_EQ(UserNames::find_file(tree.root()), file);
}

TEST(UserNames, OurOwnFileOutsideContainersOnly) {
  testing::ProcTree tree;
  tree.write("self/cgroup", "0::/system.slice/gpu-ledger.service\n");
  EXPECT_EQ(UserNames::find_file(tree.root()), "/etc/passwd");
  tree.write("self/cgroup", "0::/\n");
  EXPECT_EQ(UserNames::find_file(tree.root()), "");
}

TEST(UserNames, AProcessHasItsUidAndItsName) {
  testing::ProcTree tree;
  tree.add(5, "train", 100);
  tree.write("5/status", "Name:\ttrain\nUid:\t2001\t0\t0\t0\n");
  tree.add(6, "other", 100);
  tree.write("6/status", "Name:\tother\nUid:\t165536\t0\t0\t0\n");
  tree.add(7, "unread", 100);
  tree.write("passwd", "ana:x:2001:1::/:\n");
  Resolver resolver(ProcReader(tree.root(), tree.root() + "/passwd"), {});
  const auto map = resolver.resolve(batch_of({5, 6, 7}));
  EXPECT_EQ(map->by_pid.at(5).uid, "2001");
  EXPECT_EQ(map->by_pid.at(5).user_name, "ana");
  EXPECT_EQ(map->by_pid.at(6).uid, "165536") << "a user of a user namespace";
  EXPECT_EQ(map->by_pid.at(6).user_name, "");
  EXPECT_EQ(map->by_pid.at(7).uid, "");
}

}  // namespace
}  // namespace gpuledger::identity
