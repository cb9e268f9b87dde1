// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpuledger {

// Linux capabilities belong to threads: a new thread inherits those of its creator. A permitted capability can be made
// effective and dropped again any number of times; it works only while effective.

// Whether this thread has CAP_SYS_ADMIN permitted.
bool sys_admin_is_permitted();

// Makes CAP_SYS_ADMIN ineffective for this thread and for threads it starts later. It stays permitted.
void lay_aside_sys_admin();

// Makes CAP_SYS_ADMIN effective for this thread while the object lives, if permitted.
class RaisedSysAdmin {
 public:
  RaisedSysAdmin();
  ~RaisedSysAdmin();
  RaisedSysAdmin(const RaisedSysAdmin&) = delete;
  RaisedSysAdmin& operator=(const RaisedSysAdmin&) = delete;

 private:
  bool raised_ = false;  // by this object
};

}  // namespace gpuledger
