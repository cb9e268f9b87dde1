# SPDX-License-Identifier: Apache-2.0
# cpack reads this once for each kind of package: all that is installed, and what belongs to this kind only.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(own_part debian)
elseif(CPACK_GENERATOR STREQUAL "RPM")
  set(own_part rpm)
endif()
if(own_part)
  list(GET CPACK_INSTALL_CMAKE_PROJECTS 0 build)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS ${build} ${CPACK_PACKAGE_NAME} ${own_part} /)
endif()
