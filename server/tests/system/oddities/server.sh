# An MCP server whose answers are files: $1/tools_list, $1/tools_call or, of a tool, $1/NAME. `@ID@` in a file is the id of
# the request; a page of the list after the first is $1/tools_list.CURSOR.
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { if [ -f "$1" ]; then sed "s/@ID@/$id/g" "$1"; else fail; fi; }
  fail() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id"; }
  case $line in
    *'"initialize"'*) answer "$1/initialize" ;;
    *'"tools/list"'*)
      cursor=$(printf '%s' "$line" | sed -n 's/.*"cursor":"\([^"]*\)".*/.\1/p')
      answer "$1/tools_list$cursor"
      ;;
    *'"tools/call"'*) answer "$1/$(printf '%s' "$line" | sed -n 's/.*"name":"\([^"]*\)".*/\1/p')" ;;
    *'"id"'*) fail ;;
  esac
done
