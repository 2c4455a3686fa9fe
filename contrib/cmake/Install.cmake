# What `cmake --install` puts where. Live configuration is never installed: the
# sample goes to the documentation.

set(MCPVISOR_UNITDIR lib/systemd/system CACHE STRING
	"folder of the systemd units, below the prefix")

set(units ${PROJECT_SOURCE_DIR}/packaging/systemd)
configure_file(${units}/mcpvisor.service.in ${PROJECT_BINARY_DIR}/mcpvisor.service @ONLY)

install(TARGETS mcpvisor RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_SOURCE_DIR}/contrib/man/mcpvisor.1
	DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES
	${PROJECT_SOURCE_DIR}/LICENSE
	${PROJECT_SOURCE_DIR}/README.md
	${PROJECT_SOURCE_DIR}/VERSIONS.md
	${PROJECT_SOURCE_DIR}/conf/servers.jsonc
	DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_BINARY_DIR}/mcpvisor.service
	DESTINATION ${MCPVISOR_UNITDIR})
