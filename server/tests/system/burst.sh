# An MCP server that sends many notifications about a call, and its result at once after them.

while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%[!0-9]*}
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"Method not found"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"burst","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"all","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*)
      token=${line#*'"progressToken":'}
      token=${token%%[,\}]*}
      # One write, so that all of it arrives together.
      {
        for n in $(seq 100); do
          printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s,"total":100,"message":"step %s"}}\n' "$token" "$n" "$n"
          printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"burst","data":"line %s"}}\n' "$n"
        done
        say '"result":{"content":[{"type":"text","text":"done"}]}'
      } >"$0.$$"
      cat "$0.$$"
      rm "$0.$$"
      ;;
  esac
done
