# Turns a text file into `const char flamegraph_html[]`: cmake -DIN=.. -DOUT=.. -P embed.cmake
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "extern const char flamegraph_html[];\nconst char flamegraph_html[] = {${bytes}0};\n")
