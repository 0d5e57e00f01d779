# An MCP server that takes its time: server.sh LOG NAME SECONDS
#
# It reads its input after so many seconds. LOG gets a line `begin NAME PID` when it begins, and `ready NAME PID` when it reads.
log() { printf '%s %s %s\n' "$1" "$name" "$$" >> "$file"; }
file=$1 name=$2
log begin
sleep "${3:-0}"
log ready
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  tool() { printf '{"name":"%s","description":"%s","inputSchema":{"type":"object"}}' "$1" "$2"; }
  answer() { say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
  case $line in
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) say "\"result\":{\"tools\":[$(tool pid "The process of $name"),$(tool crash 'Crash'),$(tool pause 'Wait a while'),$(tool "feed_$name" "Feed the $name in the barn")]}" ;;
    *'"name":"pid"'*) answer "$$" ;;
    *'"name":"pause"'*) sleep 2; answer "$$" ;;
    *'"name":"crash"'*)
      printf '%s\n' '  cow.milk()' '      ^^^^' '    at Barn.open (barn.js:3)' >&2
      printf '\033[31mTypeError: cow.milk is not a function\033[0m\n\nNode.js v99' >&2
      exit 3
      ;;
    *'"name":"feed_'*) answer fed ;;
    *'"id"'*) say '"error":{"code":-32601,"message":"Method not found"}' ;;
  esac
done
