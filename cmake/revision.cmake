# SPDX-License-Identifier: Apache-2.0
# Writes the commit of the source tree into OUTPUT, a source file, if it changed: cmake -DSOURCE= -DOUTPUT= [-DCOMMIT=] -P
# COMMIT wins, for a tree without .git; without either the commit is not known. A change of tracked files shows.
if(NOT COMMIT AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git describe --always --abbrev=12 --exclude=* --dirty=-dirty
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
string(REGEX REPLACE "[^0-9A-Za-z._-]" "" COMMIT "${COMMIT}")
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
// SPDX-License-Identifier: Apache-2.0
#include "app/revision.h"

namespace gpuledger::app {

const char* revision() {
  return "@COMMIT@";
}

}  // namespace gpuledger::app
]])
