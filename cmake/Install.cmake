# `cmake --install build [--prefix FOLDER]`: the compiler, what libraries are linked with, transports, headers
# and files for pkg-config. Every file finds the others from where it lies, so that a folder may be moved.
# Components:
#
#   compiler  the compiler of this build, on LLVM's shared libraries
#   files     all else
#   static    the compiler on LLVM's archives, in the place of the other; only by its name (scripts/wheel.sh)
#
# Folders are fixed, and not GNUInstallDirs's: the compiler finds its archives in ../lib.
install(TARGETS stepc RUNTIME DESTINATION bin COMPONENT compiler)
set_target_properties(stepc PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(FILES $<TARGET_FILE:stepc_runtime> ${STEPC_CXX_ARCHIVE} DESTINATION lib COMPONENT files)
install(DIRECTORY runtime/include/stepc DESTINATION include COMPONENT files)
set(transports nccl)
if(TARGET stepc_mpi)
  list(APPEND transports mpi)
endif()
foreach(transport ${transports})
  install(TARGETS stepc_${transport} LIBRARY DESTINATION lib COMPONENT files)
endforeach()
foreach(package stepc stepc-nccl stepc-mpi)
  string(REPLACE "stepc-" "" transport ${package})
  if(package STREQUAL stepc OR transport IN_LIST transports)
    configure_file(cmake/${package}.pc.in ${package}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION lib/pkgconfig COMPONENT files)
  endif()
endforeach()
install(TARGETS stepc_static RUNTIME DESTINATION bin COMPONENT static EXCLUDE_FROM_ALL)
