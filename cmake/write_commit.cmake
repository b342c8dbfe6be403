# Writes the commit of CHECKOUT to the source FILE, unless it is there already. Empty outside of a checkout.
execute_process(COMMAND git describe --always --dirty
  WORKING_DIRECTORY ${CHECKOUT}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(text "#include \"cli/bench_machine.h\"\n\nnamespace iridium::cli {\nconst char* const built_commit = \"${commit}\";\n}\n")
set(before "")
if(EXISTS ${FILE})
  file(READ ${FILE} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${FILE} "${text}")
endif()
