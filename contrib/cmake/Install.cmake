# What `cmake --install` puts where. Live configuration is never installed: the
# sample goes to the documentation.

set(MCPVISOR_UNITDIR lib/systemd/system CACHE STRING
	"folder of the systemd units, below the prefix")

set(units ${PROJECT_SOURCE_DIR}/packaging/systemd)
configure_file(${units}/mcpvisor.service.in ${PROJECT_BINARY_DIR}/mcpvisor.service @ONLY)

install(TARGETS mcpvisor RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(page mcpvisor.1 mcpvisor.conf.5 mcpvisor.8)
	string(REGEX MATCH "[0-9]$" section ${page})
	install(FILES ${PROJECT_SOURCE_DIR}/contrib/man/${page}
		DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
install(FILES
	${PROJECT_SOURCE_DIR}/LICENSE
	${PROJECT_SOURCE_DIR}/README.md
	${PROJECT_SOURCE_DIR}/VERSIONS.md
	${PROJECT_SOURCE_DIR}/conf/mcpvisor.conf
	${PROJECT_SOURCE_DIR}/conf/mcpvisor-minimal.conf
	${PROJECT_SOURCE_DIR}/conf/servers.jsonc
	DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_BINARY_DIR}/mcpvisor.service
	DESTINATION ${MCPVISOR_UNITDIR})

# What the commands' own table says, for the shells.
set(completions
	bash share/bash-completion/completions/mcpvisor
	zsh share/zsh/vendor-completions/_mcpvisor
	fish share/fish/vendor_completions.d/mcpvisor.fish)
while(completions)
	list(POP_FRONT completions shell path)
	get_filename_component(folder ${path} DIRECTORY)
	get_filename_component(file ${path} NAME)
	set(made ${PROJECT_BINARY_DIR}/completion/${shell}/${file})
	add_custom_command(OUTPUT ${made}
		COMMAND ${CMAKE_COMMAND} -E make_directory
			${PROJECT_BINARY_DIR}/completion/${shell}
		COMMAND mcpvisor completion ${shell} > ${made}
		DEPENDS mcpvisor VERBATIM)
	list(APPEND made_completions ${made})
	install(FILES ${made} DESTINATION ${folder})
endwhile()
add_custom_target(completions ALL DEPENDS ${made_completions})
