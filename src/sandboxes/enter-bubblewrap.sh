# The last step before a command in bubblewrap: sets limits of each process, inherited by its children, the environment and the
# working directory, then executes the command at a lower priority than the server's. The environment is read from descriptor 3, as shell code
# with quoted values, so that it is on no command line.
# Arguments: most blocks of 512 bytes of a file, or nothing if there are no limits, then no core files are written either;
# most processes, or nothing if the kernel would count those of others; the working directory; the command with its arguments
if [ -n "$1" ]; then
  ulimit -f "$1"
  # shellcheck disable=SC3045 # each shell has it
  ulimit -c 0
fi
# shellcheck disable=SC3045 # bash has the one, dash the other
if [ -n "$2" ]; then ulimit -u "$2" 2> /dev/null || ulimit -p "$2"; fi
cd -- "$3" || exit 126
unset OLDPWD
shift 3
nice=$(command -v nice) && set -- "$nice" -n 10 "$@"
eval "$(cat <&3)"
exec 3<&-
exec "$@"
