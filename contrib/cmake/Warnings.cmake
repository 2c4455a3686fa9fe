# Flags of every target of ours, each probed, as an interface library: a newer
# compiler gets more, an older one still builds.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)

option(MCPVISOR_WERROR "warnings are errors" ON)
set(MCPVISOR_SANITIZE "" CACHE STRING "value for -fsanitize=, or empty")

add_library(mcpvisor_warnings INTERFACE)
set(flags
	-Wall -Wextra -Wpedantic -Wshadow -Wformat=2 -Wundef -Wvla -Walloca -Wcast-qual
	-Wcast-align -Wpointer-arith -Wwrite-strings -Wstrict-prototypes
	-Wmissing-prototypes -Wold-style-definition -Wimplicit-fallthrough
	-Wnull-dereference -Wdouble-promotion -Wconversion -Wno-sign-conversion
	-Wredundant-decls -Werror=implicit-function-declaration -Werror=int-conversion
	-Werror=incompatible-pointer-types -Werror=return-type
	-Wformat-signedness -Wlogical-op -Wduplicated-cond -Wduplicated-branches
	-Wjump-misses-init -Warith-conversion -Wstringop-truncation
	-fno-common -fstack-protector-strong -fstack-clash-protection -fcf-protection)
if(MCPVISOR_WERROR)
	list(APPEND flags -Werror)
endif()
foreach(flag IN LISTS flags)
	string(MAKE_C_IDENTIFIER "HAVE${flag}" var)
	# clang accepts unknown -W flags with a warning: ask it for an error.
	set(CMAKE_REQUIRED_FLAGS "-Werror")
	check_c_compiler_flag(${flag} ${var})
	unset(CMAKE_REQUIRED_FLAGS)
	if(${var})
		target_compile_options(mcpvisor_warnings INTERFACE ${flag})
	endif()
endforeach()

if(MCPVISOR_SANITIZE)
	target_compile_options(mcpvisor_warnings INTERFACE
		-fsanitize=${MCPVISOR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
	target_link_options(mcpvisor_warnings INTERFACE -fsanitize=${MCPVISOR_SANITIZE})
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
	# libc warns where it would treat level 3 as 2.
	set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
	check_c_source_compiles("#include <stdio.h>\nint main(void) { return 0; }\n"
		HAVE_FORTIFY_SOURCE_3)
	unset(CMAKE_REQUIRED_FLAGS)
	target_compile_options(mcpvisor_warnings INTERFACE
		-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$<IF:$<BOOL:${HAVE_FORTIFY_SOURCE_3}>,3,2>)
endif()
target_link_options(mcpvisor_warnings INTERFACE -pie -Wl,-z,relro,-z,now)
