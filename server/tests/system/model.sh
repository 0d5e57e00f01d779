# An MCP server whose tools do not say what their results are.
#   $1: a folder that it may use

text() { say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
fail() { say "\"result\":{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
turn=0

while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"Method not found"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"Town library","version":"1"}}' ;;
    *'"tools/list"'*)
      tools=
      for name in rows repr csv big read fetch; do
        tools="$tools,{\"name\":\"$name\",\"description\":\"A tool that is called $name\",\"inputSchema\":{\"type\":\"object\"}}"
      done
      say "\"result\":{\"tools\":[${tools#,}]}"
      ;;
    *'"name":"rows"'*'"more"'*) text '[{\"id\":1,\"title\":\"Private\"},{\"id\":2}]' ;;
    *'"name":"rows"'*) text '[{\"id\":7,\"title\":\"Private\"}]' ;;
    *'"name":"repr"'*) text "[{'id': 1, 'name': 'Private', 'lent': None}]" ;;
    *'"name":"csv"'*) text 'id,title\n1,Private\n2,Secret\n' ;;
    *'"name":"big"'*) text "$(head -c 120000 /dev/zero | tr '\0' x)" ;;
    *'"name":"read"'*) fail "ENOENT: /srv/other/x, not in $1/shelf: '/home/somebody/books/a.txt'" ;;
    *'"name":"fetch"'*) text 'a page' ;;
  esac
done
