# An MCP server that does something wrong.
#   $1: what. Servers of the kind `good` do wrong only when one of their tools is called.
#   $2: a file that gets its process ids and the cancellations that it was told.

echo "pid $$" >>"$2"
case $1 in
  dead) echo 'no licence found' >&2; exit 1 ;;
  silent) trap '' TERM; for second in $(seq 120); do sleep 1; done ;;
  babble) while :; do echo 'Listening on port 8080'; done ;;
  flood)
    (while :; do echo 'noise noise noise noise noise noise' >&2; done) &
    echo "pid $!" >>"$2"
    ;;
esac

tools() {
  case $1 in
    many) seq 10000 | sed 's/.*/{"name":"tool_&","description":"Does thing number &","inputSchema":{"type":"object"}},/' | tr -d '\n' ;;
    *)
      for name in pid grow fail die never babble huge ones text objects failed error blocks log; do
        printf '{"name":"%s","description":"A tool that is called %s","inputSchema":{"type":"object"}},' $name $name
      done
      ;;
  esac
  $grown
  printf '{"name":"last","inputSchema":{"type":"object"}}'
}

grown=:
grow() { printf '{"name":"parcel","description":"Tracks parcels","inputSchema":{"type":"object"}},'; }

while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  # $1, as often as there is room for in $2 bytes.
  repeat() { yes "$1" | head -n $(($2 / ${#1})) | tr -d '\n'; }
  # Values that take many times the memory of their text: $1 stands before them, $2 is one, $3 stands after them.
  values() { printf '{"jsonrpc":"2.0","id":%s,%s' "$id" "$1"; repeat "$2" "$bytes"; printf '%s}\n' "$3"; }
  bytes=$(printf '%s' "$line" | sed -n 's/.*"bytes":\([0-9]*\).*/\1/p')
  text() { say "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
  case $line in
    *'"server/discover"'*) say '"error":{"code":-32601,"message":"Method not found"}' ;;
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hostile","version":"1"}}' ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}\n' "$id" "$(tools "$1")" ;;
    *'"notifications/cancelled"'*) echo cancelled >>"$2" ;;
    *'"name":"pid"'*) text $$ ;;
    *'"name":"last"'*) text last ;;
    *'"name":"grow"'*) grown=grow; echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'; text grown ;;
    *'"name":"fail"'*) say '"error":{"code":-32000,"message":"out of order"}' ;;
    *'"name":"die"'*) exit 3 ;;
    *'"name":"never"'*) echo called >>"$2" ;;
    *'"name":"babble"'*) echo 'Segmentation fault (not really)'; echo '{"jsonrpc":"2.0",'; text 'after all' ;;
    *'"name":"ones"'*) values '"result":{"content":[],"structuredContent":{"items":[' '1,' '1]}}' ;;
    *'"name":"text"'*) values '"result":{"content":[{"type":"text","text":"[' '1,' '1]"}]}' ;;
    *'"name":"objects"'*) values '"result":{"content":[],"structuredContent":{"items":[' '{"":0},' '0]}}' ;;
    *'"name":"failed"'*) values '"result":{"isError":true,"content":[' '{"type":"text","text":""},' '{"type":"text","text":"out of order"}]}' ;;
    *'"name":"error"'*) values '"error":{"code":-32000,"message":"out of order","data":[' '1,' '1]}' ;;
    *'"name":"blocks"'*) values '"result":{"content":[' '{},' '{"type":"text","text":"last"}]}' ;;
    *'"name":"log"'*)
      printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":['
      repeat '[],' "$bytes"
      echo '[]]}}'
      text last
      ;;
    *'"name":"huge"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
      head -c 50000000 /dev/zero | tr '\0' x
      printf '"}]}}\n'
      ;;
  esac
done
