// SPDX-License-Identifier: Apache-2.0
#include "base/capability.h"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpuledger {
namespace {

constexpr unsigned kWord = CAP_SYS_ADMIN / 32;
constexpr unsigned kBit = 1u << CAP_SYS_ADMIN % 32;

struct Capabilities {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3]{};

  bool read() { return ::syscall(SYS_capget, &header, words) == 0; }
  bool write() { return ::syscall(SYS_capset, &header, words) == 0; }
};

// True: changed.
bool set_in_use(bool in_use) {
  Capabilities mine;
  if (!mine.read()) return false;
  auto& word = mine.words[kWord];
  const bool now = (word.effective & kBit) != 0;
  if (now == in_use || (in_use && (word.permitted & kBit) == 0)) return false;
  word.effective = in_use ? word.effective | kBit : word.effective & ~kBit;
  return mine.write();
}

}  // namespace

bool sys_admin_is_permitted() {
  Capabilities mine;
  return mine.read() && (mine.words[kWord].permitted & kBit) != 0;
}

void lay_aside_sys_admin() {
  (void)set_in_use(false);
}

RaisedSysAdmin::RaisedSysAdmin() : raised_(set_in_use(true)) {}

RaisedSysAdmin::~RaisedSysAdmin() {
  if (raised_) lay_aside_sys_admin();
}

}  // namespace gpuledger
