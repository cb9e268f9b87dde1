# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts on a node, and the packages of it: cpack --config build/release/CPackConfig.cmake [-G RPM]
include(GNUInstallDirs)
install(TARGETS gpu-ledger RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES README.md deploy/systemd/no-exact-time.conf deploy/systemd/root.conf deploy/systemd/textfile.conf
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY sim/scenarios DESTINATION ${CMAKE_INSTALL_DATADIR}/gpu-ledger)
install(PROGRAMS deploy/slurm/prolog.sh deploy/slurm/epilog.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/gpu-ledger/slurm)
install(FILES deploy/slurm/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/gpu-ledger/slurm)
# Completions; Debian's zsh looks in the first of its two folders, Fedora's in the second.
install(FILES deploy/completions/gpu-ledger.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME gpu-ledger)
install(FILES deploy/completions/_gpu-ledger DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES deploy/completions/_gpu-ledger DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES deploy/completions/gpu-ledger.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(FILES deploy/systemd/gpu-ledger.service DESTINATION lib/systemd/system)

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/gpu-ledger.1)
execute_process(COMMAND gzip -9nc ${PROJECT_SOURCE_DIR}/docs/gpu-ledger.1
  OUTPUT_FILE ${PROJECT_BINARY_DIR}/gpu-ledger.1.gz COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${PROJECT_BINARY_DIR}/gpu-ledger.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

# Where the two families of distributions keep a service's settings and a package's licence.
install(FILES deploy/systemd/gpu-ledger.default DESTINATION /etc/default RENAME gpu-ledger
  COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES deploy/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES deploy/systemd/gpu-ledger.default DESTINATION /etc/sysconfig RENAME gpu-ledger
  COMPONENT rpm EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/gpu-ledger COMPONENT rpm EXCLUDE_FROM_ALL)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_parts.cmake)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gpu-ledger)
set(CPACK_PACKAGE_VENDOR "the gpu-ledger authors")
set(CPACK_PACKAGE_CONTACT "gpu-ledger maintainers <maintainers@gpu-ledger.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Prometheus exporter that says who spends a GPU")
set(description
"Energy, time and memory of NVIDIA GPUs per process, container, pod and job,
and who holds GPU memory without working. Every joule of the hardware's
counter is booked exactly once.")
set(CPACK_STRIP_FILES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "${description}")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "prometheus, prometheus-node-exporter")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/deploy/debian/conffiles
  ${PROJECT_SOURCE_DIR}/deploy/debian/postinst
  ${PROJECT_SOURCE_DIR}/deploy/debian/prerm
  ${PROJECT_SOURCE_DIR}/deploy/debian/postrm)

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_DESCRIPTION "${description}")
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_RPM_PACKAGE_GROUP System/Monitoring)
set(CPACK_PACKAGE_RELOCATABLE OFF)
set(CPACK_RPM_COMPRESSION_TYPE xz)  # which every rpm reads
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _build_id_links none")
set(CPACK_RPM_POST_INSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/deploy/rpm/post)
set(CPACK_RPM_PRE_UNINSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/deploy/rpm/preun)
set(CPACK_RPM_POST_UNINSTALL_SCRIPT_FILE ${PROJECT_SOURCE_DIR}/deploy/rpm/postun)
set(CPACK_RPM_USER_FILELIST
  "%config(noreplace) /etc/sysconfig/gpu-ledger" "%license /usr/share/licenses/gpu-ledger/LICENSE")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION  # folders of the system; CPack knows the others itself
  /etc/sysconfig /usr/lib/systemd /usr/lib/systemd/system /usr/share/licenses /usr/share/man /usr/share/man/man1
  /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/fish /usr/share/fish/vendor_completions.d
  /usr/share/zsh /usr/share/zsh/site-functions /usr/share/zsh/vendor-completions)
include(CPack)
