# Functions for programs that run in a session's clone: whether a merge or a cherry-pick is under way there, and which
# of its files are unresolved. Files that are no text, and those that one side deleted, have no conflict markers: what
# git left in the folder is one side alone, and staging it would drop the other without a word.
#
# Environment: OFFSTAGE_LFS_FILTER, command of git's filter for files in LFS, which the agent may have taken out of its clone; may be
# empty

# Prints the name of what is under way; nothing if nothing is.
under_way() {
  for name in MERGE_HEAD CHERRY_PICK_HEAD; do
    if [ -f "$(git rev-parse --git-path "$name")" ]; then
      echo "$name"
      return 0
    fi
  done
}

# Prints the commit at which the branch was that a rebase under way moves; nothing if none is. One that was left for a branch is not
# under way any more: during a rebase HEAD is on none.
rebased_from() {
  ! git symbolic-ref --quiet HEAD > /dev/null || return 0
  for name in rebase-merge rebase-apply; do
    original="$(cat "$(git rev-parse --git-path "$name/orig-head")" 2> /dev/null)" || continue
    git rev-parse --verify --quiet "$original^{commit}" || true
    return 0
  done
}

# Succeeds if a rebase under way has still something to do, so that HEAD lacks commits that the branch had.
has_steps_left() {
  steps="$(git rev-parse --git-path rebase-merge/git-rebase-todo)"
  if [ -f "$steps" ]; then
    LC_ALL=C grep -qv -e '^#' -e '^[[:space:]]*$' -- "$steps"
  else
    [ "$(cat "$(git rev-parse --git-path rebase-apply/next)")" -lt "$(cat "$(git rev-parse --git-path rebase-apply/last)")" ]
  fi
}

# Succeeds if what a cherry-pick under way did outside of a clone's folders (sparse checkout) is lost: it was only in
# the index, which was removed. Committed so, the rest would be taken for all of the work.
has_lost_picks() {
  [ "$(under_way)" = CHERRY_PICK_HEAD ] && [ "$(git config --bool core.sparseCheckout)" = true ] &&
    [ ! -f "$(git rev-parse --git-path index)" ]
}

# Succeeds if the file at the path $3 is as git left it: the side of its index entry, with the mode $1 and the content $2, or a
# text with conflict markers. `git add` takes a path out of the list whatever its content is. A submodule's folder says nothing.
is_as_left() {
  case "$1" in
    160000) return 0 ;;
    120000) [ -L "$3" ] && [ "$(readlink -n -- "$3" | git hash-object --stdin)" = "$2" ] ;;
    *)
      [ -f "$3" ] && [ ! -L "$3" ] || return 1
      [ "$(git ${OFFSTAGE_LFS_FILTER:+-c "filter.lfs.process=$OFFSTAGE_LFS_FILTER"} hash-object -- "$3")" != "$2" ] || return 0
      LC_ALL=C grep -q '^<<<<<<< ' -- "$3" && LC_ALL=C grep -q '^>>>>>>> ' -- "$3"
      ;;
  esac
}

# Prints the paths of unresolved conflicts, one a line; a byte that names do not have stands for a line break in
# a name.
unresolved_paths() (
  # Names need be no text: with another locale bash reads two lines as one.
  export LC_ALL=C
  seen=
  git ls-files --unmerged -z | tr '\n\0' '\001\n' | while IFS= read -r entry; do
    shown="${entry#*	}"
    fields="${entry%%	*}"
    stage="${fields##* }"
    # The first is of neither side. The second is what is in the folder, if there is one.
    if [ "$stage" = 1 ] || [ "$shown" = "$seen" ]; then continue; fi
    seen="$shown"
    mode="${fields%% *}"
    content="${fields#* }"
    path="$(printf '%s' "$shown" | tr '\001' '\n' && echo .)"
    if is_as_left "$mode" "${content% *}" "${path%.}"; then printf '%s\n' "$shown"; fi
  done
)
