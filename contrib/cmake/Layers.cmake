# A folder of src/ is a layer is an OBJECT library; each may use the ones
# before it. layer_program links them all; tests link a prefix of them.

# layer(NAME [LIBS TARGET...]): the next higher layer, and the libraries that it
# alone, and who links it, may use. A folder without sources yet is no target.
function(layer name)
	cmake_parse_arguments(L "" "" "LIBS" ${ARGN})
	set_property(GLOBAL APPEND PROPERTY MCPVISOR_LAYERS ${name})
	file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.c)
	if(NOT sources)
		return()
	endif()
	add_library(layer_${name} OBJECT ${sources})
	target_include_directories(layer_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
	target_include_directories(layer_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src/${name})
	target_compile_definitions(layer_${name} PRIVATE
		_GNU_SOURCE MCPVISOR_VERSION="${PROJECT_VERSION}")
	target_link_libraries(layer_${name} PUBLIC ${L_LIBS})
	target_link_libraries(layer_${name} PRIVATE mcpvisor_warnings)
endfunction()

# layer_link(TARGET UPTO): gives TARGET the objects and libraries of all layers up
# to and with UPTO, and the flags of our own code.
function(layer_link target upto)
	get_property(layers GLOBAL PROPERTY MCPVISOR_LAYERS)
	if(NOT upto IN_LIST layers)
		message(FATAL_ERROR "${target}: no layer \"${upto}\" among ${layers}")
	endif()
	foreach(name IN LISTS layers)
		if(TARGET layer_${name})
			target_link_libraries(${target} PRIVATE layer_${name})
		endif()
		if(name STREQUAL upto)
			break()
		endif()
	endforeach()
	target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
	target_compile_definitions(${target} PRIVATE
		_GNU_SOURCE MCPVISOR_VERSION="${PROJECT_VERSION}")
	target_link_libraries(${target} PRIVATE mcpvisor_warnings)
endfunction()

# layer_program(TARGET SOURCE...): an executable on top of all layers.
function(layer_program target)
	get_property(layers GLOBAL PROPERTY MCPVISOR_LAYERS)
	list(GET layers -1 top)
	add_executable(${target} ${ARGN})
	layer_link(${target} ${top})
endfunction()

# layer_closures(SOURCE): one executable a layer out of SOURCE and the objects up to
# that layer. A call upward does not link.
function(layer_closures source)
	get_property(layers GLOBAL PROPERTY MCPVISOR_LAYERS)
	foreach(name IN LISTS layers)
		if(NOT TARGET layer_${name})
			continue()
		endif()
		add_executable(closure_${name} ${source})
		layer_link(closure_${name} ${name})
		add_test(NAME layers.closure_${name} COMMAND closure_${name})
	endforeach()
endfunction()
