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
set -eu
find "$(git rev-parse --git-dir)" -name "*.lock" -type f -delete
[ "$(git rev-parse HEAD)" = "$OFFSTAGE_AT" ]
# What the agent left unfinished would stop what follows.
for unfinished in merge cherry-pick revert rebase; do git "$unfinished" --quit 2> /dev/null || true; done
# git touches no folder of a submodule. One that is recorded at another commit by now, or not at all, stays as it is, and the next
# `git add --all`, the agent's or ours, would record what is in it: what others did would be taken back. Nothing can be fetched from
# here. So the folder of a submodule that moved on stays, with a mark on its entry by which git does not look into it; that of one that
# is gone goes too, and if something was done in it, git ignores it instead.
line_break="$(printf '\001')"
# Calls a function for each submodule of the exported commit that is checked out, with its path; a byte that names do not have stands for
# a line break in a name.
each_submodule() {
  [ -n "$(git ls-tree "$OFFSTAGE_FROM" -- .gitmodules)" ] || return 0
  git ls-tree -r -z "$OFFSTAGE_FROM" | tr '\n\0' '\001\n' | LC_ALL=C sed -n 's/^160000 commit [0-9a-f]*	//p' |
    while IFS= read -r inner; do
      case "$inner" in *"$line_break"*)
        inner="$(printf '%s' "$inner" | tr '\001' '\n' && echo .)"
        inner="${inner%.}"
        ;;
      esac
      if [ -e "$inner/.git" ] && [ ! -L "$inner" ]; then "$1" "$inner"; fi
    done
}
# Prints the commit that is checked out in the folder, if that is the one with which it was made (clones/submodules.ts).
as_made() {
  made="$(git -C "$1" rev-parse --verify --quiet refs/remotes/origin/recorded)" || return 0
  if [ "$(git -C "$1" rev-parse HEAD 2> /dev/null)" = "$made" ]; then echo "$made"; fi
}
remove_gone() {
  case "$(git ls-tree "${OFFSTAGE_TO:-$OFFSTAGE_THEIRS}" -- "$1")" in "160000 "*) return 0 ;; esac
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
each_submodule remove_gone
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
each_submodule mark_moved
echo offstage-taken-in >&2
