# Takes a commit of the mirror into a session's clone from which everything was exported. It runs inside the sandbox, since an
# agent may have changed the clone's settings; nothing else runs there. Files that git ignores stay, unless the commit has files
# of their names.
#
# Environment: HOME, git's author and committer, and
#   OFFSTAGE_FROM     the exported commit
#   OFFSTAGE_AT       the commit that HEAD is at: if it is not, the agent left another repository, and nothing is done
#   OFFSTAGE_BRANCH   the session's work branch, which is checked out
#   OFFSTAGE_TO       the commit to continue from; or, if the clone's commit and another collide, empty and
#   OFFSTAGE_THEIRS   the other
#   OFFSTAGE_ONTO     empty: theirs is merged into HEAD. A commit: what was done since it is put on top of theirs
#   OFFSTAGE_MESSAGE  message of the commit that joins the two
# stderr, beside messages: `offstage-taken-in` if the clone is at the commit now, or in the middle of joining the two
# shellcheck disable=SC2153 # the environment has them
set -eu
find "$(git rev-parse --git-dir)" -name "*.lock" -type f -delete
[ "$(git rev-parse HEAD)" = "$OFFSTAGE_AT" ]
# An operation that the agent left unfinished would block the following ones.
for unfinished in merge cherry-pick revert rebase; do git "$unfinished" --quit 2> /dev/null || true; done
# git touches no folder of a submodule. One that is recorded at another commit by now, or not at all, stays as it is,
# and the next `git add --all`, the agent's or ours, would record what is in it, and so revert others' changes. Nothing
# can be fetched from here. So the folder of a submodule that moved on stays, with a mark on its entry by which git does
# not look into it, until `renew-submodules.sh` brings it to the new commit; that of one that is gone goes too, and if
# something was done in it, git ignores it instead.
remove_gone() {
  if has_gitlink "${OFFSTAGE_TO:-$OFFSTAGE_THEIRS}" "$1"; then return 0; fi
  if [ -n "$(as_made "$1")" ] && [ -z "$(git -C "$1" status --porcelain 2> /dev/null)" ]; then
    rm -rf -- "$1"
  else
    printf '/%s/\n' "$1" | sed 's/[][*?\\ ]/\\&/g' >> "$(git rev-parse --git-path info/exclude)"
  fi
}
mark_moved() {
  now="$(git rev-parse --verify --quiet ":$1")" || return 0
  case "$(as_made "$1")" in
    "") ;;
    "$now") git update-index --no-skip-worktree -- "$1" ;;
    *) git update-index --skip-worktree -- "$1" ;;
  esac
}
each_gitlink "$OFFSTAGE_FROM" remove_gone
git checkout --quiet --force -B "$OFFSTAGE_BRANCH" "${OFFSTAGE_TO:-$OFFSTAGE_FROM}" --
if [ -z "$OFFSTAGE_TO" ] && [ -z "$OFFSTAGE_ONTO" ]; then
  git -c merge.conflictStyle=merge merge --quiet --no-ff --no-gpg-sign --no-verify --no-rerere-autoupdate \
    --message "$OFFSTAGE_MESSAGE" "$OFFSTAGE_THEIRS" || git rev-parse --verify --quiet MERGE_HEAD
elif [ -z "$OFFSTAGE_TO" ]; then
  since="$(git commit-tree "$OFFSTAGE_FROM^{tree}" -p "$OFFSTAGE_ONTO" -m "$OFFSTAGE_MESSAGE")"
  git checkout --quiet --force -B "$OFFSTAGE_BRANCH" "$OFFSTAGE_THEIRS" --
  git -c merge.conflictStyle=merge cherry-pick --no-gpg-sign --no-rerere-autoupdate "$since" ||
    git rev-parse --verify --quiet CHERRY_PICK_HEAD
fi
each_gitlink "$OFFSTAGE_FROM" mark_moved
echo offstage-taken-in >&2
