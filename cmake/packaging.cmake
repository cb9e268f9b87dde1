# What `cmake --install` puts on a node, and the Debian package of it: cpack --config build/release/CPackConfig.cmake
include(GNUInstallDirs)
install(TARGETS gpu-ledger RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES docs/gpu-ledger.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES README.md deploy/systemd/exact-time.conf deploy/systemd/root.conf deploy/systemd/textfile.conf
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES deploy/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Completions; Debian's zsh looks in the first of its two folders, Fedora's in the second.
install(FILES deploy/completions/gpu-ledger.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
  RENAME gpu-ledger)
install(FILES deploy/completions/_gpu-ledger DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES deploy/completions/_gpu-ledger DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES deploy/completions/gpu-ledger.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(FILES deploy/systemd/gpu-ledger.service DESTINATION lib/systemd/system)
install(FILES deploy/systemd/gpu-ledger.default DESTINATION /etc/default RENAME gpu-ledger)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gpu-ledger)
set(CPACK_PACKAGE_CONTACT "gpu-ledger maintainers <maintainers@gpu-ledger.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Prometheus exporter that says who spends a GPU")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Energy, time and memory of NVIDIA GPUs per process, container, pod and job,
and who holds GPU memory without working. Every joule of the hardware's
counter is booked exactly once.")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "prometheus, prometheus-node-exporter")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${PROJECT_SOURCE_DIR}/deploy/debian/conffiles
  ${PROJECT_SOURCE_DIR}/deploy/debian/postinst
  ${PROJECT_SOURCE_DIR}/deploy/debian/prerm
  ${PROJECT_SOURCE_DIR}/deploy/debian/postrm)
include(CPack)
