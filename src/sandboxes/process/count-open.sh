# Prints `open device:inode blocks` for each deleted file that a process has open, executes or, if the server has the
# right to see it, has mapped; `shared` and the kilobytes of shared memory; and for each socket the number of
# descriptors in flight with the socket's inode. A thread may have separate descriptors; and if a process's first thread
# has ended, its data are visible only under another thread's id. Arguments: process ids, or `uid` and a user id
LC_ALL=C
export LC_ALL
cd /proc || exit 0
if [ "$1" = uid ]; then
  # shellcheck disable=SC2046 # each word is a process id
  set -- $(grep -ls "^Uid:[[:space:]]*$2[[:space:]]" [0-9]*/status | sed 's|/status$||')
fi
[ $# -gt 0 ] || exit 0
shown=""
for pid; do
  if ! [ -e "$pid/exe" ]; then
    for thread in "$pid"/task/*; do
      if [ -e "$thread/exe" ]; then pid="${thread##*/}"; break; fi
    done
  fi
  shown="$shown $pid"
done
of_threads() { for pid; do for thread in "$pid"/task/*; do echo "$thread"; done; done; }
threads="$(of_threads "$@")"
maps=map_files
[ "$(id -u)" = 0 ] || maps=
{
  for thread in $threads; do echo "$thread/fd"; done
  for pid in $shown; do echo "$pid/exe"; [ -z "$maps" ] || echo "$pid/$maps"; done
} | tr '\n' '\0' | xargs -0 sh -c 'exec find -L "$@" -maxdepth 1 -type f -links 0 -printf "open %D:%i %b\n" 2> /dev/null' sh
for pid in $shown; do echo "$pid/smaps_rollup"; done | tr '\n' '\0' | xargs -0 cat 2> /dev/null |
  sed -n 's/^Pss_Shmem: *\([0-9]*\) kB/shared \1/p'
for thread in $threads; do echo "$thread/fdinfo"; done | tr '\n' '\0' |
  xargs -0 sh -c 'exec find "$@" -maxdepth 1 -type f -print0 2> /dev/null' sh | xargs -0 cat 2> /dev/null |
  sed -n '/^ino:/h; /^scm_fds:[[:space:]]*[1-9]/{G;s/\n/ /;p;}'
exit 0
