# Runs a gate with the interpreter of its `#!` line; without one, with bash, stopping at the first command that fails, or with sh if
# there is no bash. Its standard input is the event. When it has ended, the last line of stderr is the mark and its exit code: without
# that line it was ended from outside.
# Arguments: the script's file, relative to the home; the mark. Environment: OFFSTAGE_EVENT, the event's file
umask 077
file="$HOME/$1"
chmod +x "$file"
case "$(head -c 2 "$file")" in
"#!") "$file" ;;
*) if command -v bash > /dev/null; then bash -eo pipefail "$file"; else sh -e "$file"; fi ;;
esac < "$OFFSTAGE_EVENT"
code=$?
printf '\n%s %s\n' "$2" "$code" >&2
exit "$code"
