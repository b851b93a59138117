# Reports the state of a join that an agent was to do by hand; needs merge-state.sh. It runs inside the sandbox, and
# changes nothing.
#
# Environment: HOME, and
#   OFFSTAGE_THEIRS  the commit of others that is joined with the work
#   OFFSTAGE_ONTO    empty: by a merge. A commit: by putting what was done since it on top of theirs
# stderr, beside messages: `offstage-unresolved <path>` for each unresolved file, and `offstage-join <state>`:
#   under-way  the clone is in the middle of it
#   done       the clone's history has their commit, and with `OFFSTAGE_ONTO` something on top of it
#   emptied    with `OFFSTAGE_ONTO`: the clone is at their commit, and nothing is on top of it; or what was to be is lost in part
#   undone     otherwise
set -eu
if [ -n "$OFFSTAGE_ONTO" ] && has_lost_picks && [ "$(git rev-parse HEAD)" = "$OFFSTAGE_THEIRS" ]; then
  state=emptied
elif [ -n "$(under_way)" ]; then
  unresolved_paths | sed 's/^/offstage-unresolved /' >&2
  state=under-way
elif ! git merge-base --is-ancestor "$OFFSTAGE_THEIRS" HEAD; then
  state=undone
elif [ -z "$OFFSTAGE_ONTO" ] || [ "$(git rev-parse HEAD)" != "$OFFSTAGE_THEIRS" ]; then
  state="done"
elif [ -n "$(git status --porcelain)" ]; then
  state="done"
else
  state=emptied
fi
echo "offstage-join $state" >&2
