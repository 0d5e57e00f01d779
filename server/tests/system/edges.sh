# An MCP server whose lists and answers are what no reader expects.
#   $1: what its list is like.

page=0
while IFS= read -r line; do
  id=${line#*'"id":'}
  id=${id%%[!0-9]*}
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  text() { say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
  deep() { printf '[%.0s' $(seq 1000); printf ']%.0s' $(seq 1000); }
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"Method not found"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"edges","version":"1"}}' ;;
    *'"resources/list"'*) say '"result":{"resources":[{"uri":"x:y","name":"y"}],"nextCursor":"again"}' ;;
    *'"tools/list"'*)
      page=$((page + 1))
      case $1 in
        endless)
          [ -n "$tools" ] || tools=$(seq 2000 | sed 's/.*/{"name":"tool_&","inputSchema":{"type":"object"}},/' | tr -d '\n')
          say "\"result\":{\"tools\":[${tools%,}],\"nextCursor\":\"$page\"}"
          ;;
        circle) say '"result":{"tools":[{"name":"one","inputSchema":{"type":"object"}}],"nextCursor":"again"}' ;;
        huge)
          printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"' "$id"
          head -c 100000 /dev/zero | tr '\0' x
          printf '","inputSchema":{"type":"object"}},{"name":"wordy","description":"'
          head -c 1000000 /dev/zero | tr '\0' y
          printf '","inputSchema":{"type":"object"}}]}}\n'
          ;;
        *)
          for name in deep nameless utf8 odd twice late; do
            printf '{"name":"%s","inputSchema":{"type":"object"}},' $name
          done >"$0.$$"
          say "\"result\":{\"tools\":[$(cat "$0.$$"){\"name\":\"last\",\"inputSchema\":{\"type\":\"object\"}}]}"
          rm "$0.$$"
          ;;
      esac
      ;;
    *'"name":"deep"'*) say "\"result\":{\"structuredContent\":{\"a\":$(deep)},\"content\":[]}" ;;
    *'"name":"nameless"'*) printf '{"jsonrpc":"2.0","result":{"structuredContent":{"id":1,"a":%s},"content":[]}}\n' "$(deep)" ;;
    *'"name":"utf8"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"\377\376"}]}}\n' "$id" ;;
    *'"name":"odd"'*) say '"error":"no"' ;;
    *'"name":"twice"'*) text first; text second; text third ;;
    *'"name":"late"'*) late=$id ;;
    *'"notifications/cancelled"'*) id=$late; text 'too late' ;;
    *'"name":"last"'*) text last ;;
  esac
done
