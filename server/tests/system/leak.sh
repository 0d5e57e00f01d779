# An MCP server that tells its secrets: $API_TOKEN in every spelling, $PASSWORD in its description.
#   $1: a file that gets the inputs of its calls and the cancellations that it was told.

while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  spellings="$API_TOKEN $(printf 'user:%s@host' "$API_TOKEN" | base64 -w0) $(printf '%s' "$API_TOKEN" | sed 's/+/%2B/g; s,/,%2F,g')"
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"Method not found"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"leak","version":"1"}}' ;;
    *'"tools/list"'*)
      say "\"result\":{\"tools\":[
        {\"name\":\"tell\",\"description\":\"Signs in with $PASSWORD\",\"inputSchema\":{\"type\":\"object\"}},
        {\"name\":\"fail\",\"inputSchema\":{\"type\":\"object\"}},
        {\"name\":\"picture\",\"inputSchema\":{\"type\":\"object\"}},
        {\"name\":\"never\",\"inputSchema\":{\"type\":\"object\"}}]}" | tr -d '\n'
      echo
      ;;
    *'"notifications/cancelled"'*) echo cancelled >>"$1" ;;
    *'"name":"tell"'*)
      echo "$line" >>"$1"
      echo "signing in with $API_TOKEN" >&2
      say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$spellings\"}]}"
      ;;
    *'"name":"fail"'*) say "\"result\":{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"denied to $spellings at /home/me/server/index.js\"}]}" ;;
    *'"name":"picture"'*) say '"result":{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"},{"type":"text","text":"a picture"}],"_meta":{"own":1}}' ;;
    *'"name":"never"'*) echo called >>"$1" ;;
  esac
done
