# iridium_warnings(target): the warnings every target of this project is built with.
function(iridium_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                                           -Woverloaded-virtual -Wconversion -Werror)
endfunction()
