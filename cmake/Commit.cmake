# Writes the commit of SOURCE into OUTPUT as a C string, and only when it changed.
#
#   cmake -DSOURCE=folder -DOUTPUT=file -P Commit.cmake
set(commit unknown)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE}/.git) # and not that of a repository around it
  execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(commit ${found})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "\"${commit}\"\n")
