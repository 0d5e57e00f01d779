# An MCP server that ignores the end of its input and SIGTERM. MARK marks its processes.
trap '' TERM HUP INT
sleep 1000 &
setsid sleep 1000 &
while true; do
  if IFS= read -r line; then
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
    case "$line" in
      *'"server/discover"'*) say '"error":{"code":-32601,"message":"no"}' ;;
      *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
      *'"tools/list"'*) say '"result":{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}' ;;
      *'"tools/call"'*) echo waiting >&2 ;;
    esac
  else
    wait
  fi
done
