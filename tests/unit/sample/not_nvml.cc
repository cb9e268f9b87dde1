// SPDX-License-Identifier: Apache-2.0
extern "C" int not_nvml() {
  return 0;
}
