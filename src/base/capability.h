// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuledger {

// Linux gives capabilities to threads: a new one has those of the thread that made it. A capability that is permitted
// can be put to use and laid aside as often as one likes; it has an effect only while it is in use.

// Whether this thread may put CAP_SYS_ADMIN to use.
bool sys_admin_is_permitted();

// Lays it aside, for this thread and those it makes from now on. It stays permitted.
void lay_aside_sys_admin();

// Puts CAP_SYS_ADMIN to use for this thread while the object lives, where it is permitted.
class RaisedSysAdmin {
 public:
  RaisedSysAdmin();
  ~RaisedSysAdmin();
  RaisedSysAdmin(const RaisedSysAdmin&) = delete;
  RaisedSysAdmin& operator=(const RaisedSysAdmin&) = delete;

 private:
  bool raised_ = false;  // by us
};

}  // namespace gpuledger
