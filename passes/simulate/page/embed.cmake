# cmake -D HTML=… -D SCRIPT=… -D OUTPUT=… -P page.cmake: the page and its script as C++ text.
file(READ ${HTML} html)
file(READ ${SCRIPT} script)
file(WRITE ${OUTPUT}.new "#include \"passes/simulate/PageTemplate.h\"
const char *const stepc::simulate::kPage = R\"~~~(${html})~~~\";
const char *const stepc::simulate::kPageScript = R\"~~~(${script})~~~\";
")
file(RENAME ${OUTPUT}.new ${OUTPUT})
