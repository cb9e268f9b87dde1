// SPDX-License-Identifier: Apache-2.0
// Linked into the static release only. The release is built on a new glibc and must load on older ones, down to 2.34
// (Ubuntu 22.04, RHEL 9). The few functions that older ones lack are here; tools/check_release.sh checks that no others
// are needed. They are hidden, so that no library uses them instead of glibc's.
#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

// The names are glibc's, and addresses are numbers in its interfaces.
// NOLINTBEGIN(bugprone-reserved-identifier,performance-no-int-to-ptr)
#define GL_HIDDEN __attribute__((visibility("hidden")))

// glibc 2.35 has a new version of hypot, which reports errors differently. The first version is in every glibc.
#if defined(__x86_64__)
#define GL_FIRST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define GL_FIRST_GLIBC "GLIBC_2.17"
#else
#error "which is the first glibc of this architecture? See the versions that objdump -T libc.so.6 lists"
#endif
__asm__(".symver first_hypot, hypot@" GL_FIRST_GLIBC);

namespace {

struct Search {
  uintptr_t address;
  dl_find_object* found;
};

int look_into(dl_phdr_info* object, size_t, void* data) {
  const auto& search = *static_cast<const Search*>(data);
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
  const void* unwind_table = nullptr;
  bool inside = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const uintptr_t first = object->dlpi_addr + segment.p_vaddr;
    const uintptr_t last = first + segment.p_memsz;
    if (segment.p_type == PT_GNU_EH_FRAME) unwind_table = reinterpret_cast<const void*>(first);
    if (segment.p_type != PT_LOAD) continue;
    if (first < begin) begin = first;
    if (last > end) end = last;
    if (search.address >= first && search.address < last) inside = true;
  }
  if (!inside || !unwind_table) return 0;
  *search.found = {};
  search.found->dlfo_map_start = reinterpret_cast<void*>(begin);
  search.found->dlfo_map_end = reinterpret_cast<void*>(end);
  search.found->dlfo_eh_frame = const_cast<void*>(unwind_table);
  return 1;
}

}  // namespace

extern "C" {

double first_hypot(double x, double y);
GL_HIDDEN double __wrap_hypot(double x, double y) {  // by the linker's --wrap=hypot
  return first_hypot(x, y);
}

// 2.35: the unwinder of a thrown exception uses it to find the tables of the current code.
GL_HIDDEN int _dl_find_object(void* address, dl_find_object* found) noexcept {
  Search search{reinterpret_cast<uintptr_t>(address), found};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}

// 2.36: used by libstdc++'s random_device and by libcrypt for salts.
GL_HIDDEN void arc4random_buf(void* buffer, size_t size) noexcept {
  auto* next = static_cast<char*>(buffer);
  while (size > 0) {
    const ssize_t got = getrandom(next, size, 0);
    if (got < 0 && errno != EINTR) abort();  // it cannot return an error, and the bytes must be random
    if (got < 0) continue;
    next += got;
    size -= static_cast<size_t>(got);
  }
}

GL_HIDDEN uint32_t arc4random() noexcept {
  uint32_t value = 0;
  arc4random_buf(&value, sizeof value);
  return value;
}

// 2.32: whether locks may be left out. Always 0, because the program has threads from its start. Also for the
// simulator: it is a shared library, and Debian's static yaml-cpp in it, which is not compiled for one, cannot refer to
// glibc's variable.
GL_HIDDEN char __libc_single_threaded = 0;

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,performance-no-int-to-ptr)
