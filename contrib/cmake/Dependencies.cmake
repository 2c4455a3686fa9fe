# Libraries are found through pkg-config; what is missing is named by its Debian
# package, because that is what the reader has to type.

find_package(PkgConfig)
if(NOT PKG_CONFIG_FOUND)
	message(FATAL_ERROR "pkg-config is missing (Debian: apt-get install pkg-config)")
endif()

# Sets up the target PkgConfig::PREFIX.
function(dependency prefix module version package)
	pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${module}>=${version})
	if(NOT ${prefix}_FOUND)
		message(FATAL_ERROR "${module} >= ${version} is missing "
			"(Debian: apt-get install ${package})")
	endif()
	message(STATUS "Found ${module} ${${prefix}_VERSION}")
endfunction()

# dependency_headers(PREFIX MODULE VERSION PACKAGE): the target headers_PREFIX has the
# headers alone, for a library that is loaded at run time, when it is first needed.
function(dependency_headers prefix module version package)
	pkg_check_modules(${prefix} QUIET ${module}>=${version})
	if(NOT ${prefix}_FOUND)
		message(FATAL_ERROR "${module} >= ${version} is missing "
			"(Debian: apt-get install ${package})")
	endif()
	add_library(headers_${prefix} INTERFACE)
	target_include_directories(headers_${prefix} SYSTEM INTERFACE
		${${prefix}_INCLUDE_DIRS})
	message(STATUS "Found headers of ${module} ${${prefix}_VERSION}")
endfunction()
