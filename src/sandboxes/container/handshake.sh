# Runs before a container's command, and executes it when the server says so: until then none of the session's code runs, and
# the container's limits can be verified. It uses only the shell's builtins, except for the trials of the network, and reads
# only the server's lines: the rest of the input is the command's. The trials read no input, and no variable of the command's
# environment can change what bash or Node execute.
# Arguments: the texts of try-network.sh and try-network.cjs, then the command with its arguments
# Input, one line each; every answer but that of `go` ends with a line `.`:
#   tell <file>...         prints the kernel's files that can be read: `=` and the name, then its lines, each after a space
#   try-bash <address>...  tries the network by bash
#   try-node <address>...  tries the network by the image's Node
#   go                     executes the command
echo ready
while read -r word rest; do
  case $word in
    go)
      shift 2
      exec "$@" ;;
    tell)
      for file in $rest; do
        [ -r "$file" ] || continue
        echo "=$file"
        while IFS= read -r line; do printf ' %s\n' "$line"; done < "$file"
      done
      echo . ;;
    try-bash)
      # shellcheck disable=SC2086 # each word is an address
      LD_PRELOAD='' LC_ALL=C bash -p -c "$1" bash $rest < /dev/null 2> /dev/null
      echo . ;;
    try-node)
      # shellcheck disable=SC2086 # each word is an address
      LD_PRELOAD='' NODE_OPTIONS='' node -e "$2" $rest < /dev/null 2> /dev/null
      echo . ;;
  esac
done
exit 125
