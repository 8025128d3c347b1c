# Compile each generated library as one source, so that its headers are read once. Two libraries define a name in
# several of their sources, and stay as they are: rosidl_generator_c and rosidl_typesupport_introspection_cpp.
function(unite_sources)
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  list(FILTER targets INCLUDE REGEX
    "__rosidl_(generator_py|typesupport_(c|cpp|fastrtps_c|fastrtps_cpp|introspection_c))$")
  foreach(target IN LISTS targets)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endforeach()
endfunction()
cmake_language(DEFER CALL unite_sources)
