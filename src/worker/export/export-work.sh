# Takes a repository's work out of the sandbox; needs `stage_all` (stage-all.sh) and merge-state.sh. It runs inside, where the agent's hooks and
# settings can do no more than the agent could. Nothing else runs there by then: a lock file is a leftover of a killed git, and would
# stop every later one. If the agent broke its repository or began another one, its files still count, on top of the last
# known commit.
# The program commits what is uncommitted, writes all new objects as a pack to stdout (nothing if there are none), and reports
# the commit that counts. That is HEAD, on whatever branch; if HEAD has nothing new, or is on no branch at an earlier commit of the
# session's, the agent only checked it out, and the session's branch counts, which may also have gone back. During a rebase it is what
# the branch was before that.
#
# What was committed inside a submodule is nowhere else, so the superproject keeps the commit that it recorded before. A commit
# that a remote-tracking branch of the submodule has is pushed, and may be recorded.
#
# Environment: HOME, git's author and committer, and
#   OFFSTAGE_BASE     commit that the agent's history must share
#   OFFSTAGE_BEFORE   the last known commit
#   OFFSTAGE_KNOWN    commits whose objects are outside already, separated by spaces
#   OFFSTAGE_BRANCH   the session's work branch
#   OFFSTAGE_OBJECTS  the mirror's object folder
#   OFFSTAGE_LFS_FILTER  command of git's filter for files in LFS
#   OFFSTAGE_MESSAGE  message of the commit of what is uncommitted
#   OFFSTAGE_ENDED    empty if the agent's turn did not end by itself: a merge under way then stays so. Otherwise it is committed,
#                     unless files collide that nobody has resolved. A rebase stays under way if it has still something to do
#   OFFSTAGE_OURS     the session's commit in a join that the agent is to do by hand: it counts while that is under way. May be
#                     empty
#   OFFSTAGE_TELLS    whether branches are named that have more than what counts; empty if not
#   OFFSTAGE_SPARSE, OFFSTAGE_SPARSE_HAS  see stage-all.sh
#   OFFSTAGE_CHECKOUT  see stage-all.sh: the list of changes is then on stdin
# stderr, beside messages: `offstage-committed <commit>` of what was uncommitted, `offstage-head <commit>`, for each submodule
# in which something was changed `offstage-submodule <path>`, for each branch that has more `offstage-left-behind <ref>`, and what
# stage-all.sh says of files that git refuses. If a merge or a rebase stays under way, nothing is
# committed, and there are `offstage-unresolved <path>` for each file that nobody has resolved, and `offstage-unfinished`
set -eu
OFFSTAGE_CHANGES=
if [ -n "${OFFSTAGE_CHECKOUT:-}" ]; then
  OFFSTAGE_CHANGES="$HOME/.offstage-changes"
  cat > "$OFFSTAGE_CHANGES"
fi
if ! git merge-base HEAD "$OFFSTAGE_BASE" > /dev/null 2>&1; then
  export GIT_DIR="$HOME/.offstage-repository" GIT_WORK_TREE="$PWD"
  OFFSTAGE_CHANGES=
  rm -rf "$GIT_DIR"
  case ${#OFFSTAGE_BASE} in 64) format=sha256 ;; *) format=sha1 ;; esac
  git init --quiet --object-format="$format"
  echo "$OFFSTAGE_OBJECTS" > "$GIT_DIR/objects/info/alternates"
  set_lfs_filter
  git update-ref HEAD "$OFFSTAGE_BEFORE"
  git read-tree HEAD
  keep_outside always
fi
find "$(git rev-parse --git-dir)" -type d ! -perm -700 -exec chmod u+rwx {} \; -o -name "*.lock" -type f -delete -o \
  -type f ! -perm -600 ! -path "*/objects/*" -exec chmod u+rw {} +
# By these settings git would look for the files elsewhere, and take all of them for deleted, or for none.
git config --unset-all core.worktree || true
if [ "$(git config --bool core.bare)" = true ]; then git config core.bare false; fi
# Without an index, files that are in git and ignored would be taken for deleted.
index="$(git rev-parse --git-path index)"
if [ -f "$index" ] && ! git ls-files > /dev/null 2>&1; then rm -f "$index"; fi
[ -f "$index" ] || [ -n "${OFFSTAGE_SPARSE:-}" ] || git read-tree HEAD
# shellcheck disable=SC2086 # each word is a commit
newest() { git rev-list --max-count=1 "$1" --not $OFFSTAGE_KNOWN; }
# Writes what is new up to the commit $1, and reports it.
export_commit() {
  if [ -n "$(newest "$1")" ]; then
    # shellcheck disable=SC2086,SC2046 # each word is a commit
    printf '%s\n' "$1" $(printf '^%s ' $OFFSTAGE_KNOWN) | git pack-objects --quiet --revs --thin --stdout
  fi
  echo "offstage-head $1" >&2
}
# Of some operations git has no name: what `git stash pop` or `git apply --3way` could not join is known by the index alone.
rebased="$(rebased_from)"
if [ -n "$(under_way)$rebased" ] || [ -n "$(git ls-files --unmerged | head -n 1)" ]; then
  unresolved="$(unresolved_paths)"
  is_unfinished() {
    [ -z "$unresolved" ] || return 0
    if [ -n "$rebased" ]; then has_steps_left && return 0; fi
    [ -n "$(under_way)" ] || return 1
    [ -z "$OFFSTAGE_ENDED" ] || { [ -n "${OFFSTAGE_OURS:-}" ] && has_lost_picks; }
  }
  if is_unfinished; then
    if [ -n "$unresolved" ]; then printf '%s\n' "$unresolved" | sed 's/^/offstage-unresolved /' >&2; fi
    echo offstage-unfinished >&2
    ours="$(git rev-parse --verify --quiet "${OFFSTAGE_OURS:-${rebased:-HEAD}}^{commit}")" || ours="$(git rev-parse HEAD)"
    export_commit "$ours"
    exit 0
  fi
fi
# Prints the submodules in the index; a byte that names do not have stands for a line break in a name.
gitlinks() { git ls-files --stage -z | tr '\n\0' '\001\n' | LC_ALL=C grep '^160000 ' || true; }
# The commits that the agent itself recorded: staging would record what is checked out in each folder.
before_staging="$(gitlinks)"
# A merge's changes outside of a clone's folders are in the index alone. Without it the commit would say that theirs is
# merged, and take that part of it back: the push joins the two again.
if [ -n "${OFFSTAGE_SPARSE:-}" ] && [ ! -f "$(git rev-parse --git-path index)" ]; then git merge --quit 2> /dev/null || true; fi
stage_all
rm -f "$HOME"/.offstage-changes*

line_break="$(printf '\001')"
# Prints `put <path>` for each submodule whose recorded commit is put back, and `left <path>` for others with changes inside.
keep_submodules() {
  printf '%s\n' "$before_staging" | while IFS= read -r entry; do
    shown="${entry#*	}"
    inner="$shown"
    # A process for each of a million submodules would take an hour.
    case "$inner" in *"$line_break"*)
      inner="$(printf '%s' "$shown" | tr '\001' '\n' && echo .)"
      inner="${inner%.}"
      ;;
    esac
    [ -e "$inner/.git" ] || continue
    recorded="$(git rev-parse --verify --quiet "$OFFSTAGE_BEFORE:$inner")" || continue
    sha="$(git rev-parse --verify --quiet ":$inner")" || continue
    staged="$sha"
    inside() { env -u GIT_DIR -u GIT_WORK_TREE git -C "$inner" "$@" 2> /dev/null; }
    # If a folder is as it was made (clones/submodules.ts), that commit was not chosen by the agent. If the index has
    # another, the agent, in whichever turn, or others recorded it.
    made="$(inside rev-parse --verify --quiet refs/remotes/origin/recorded)" || made=
    if [ "$sha" = "$recorded" ] || [ "$sha" = "$made" ]; then
      sha="${entry#160000 }"
      sha="${sha%% *}"
    fi
    if [ "$sha" != "$recorded" ] && [ -n "$(inside rev-list --max-count=1 "$sha" --not --remotes)" ]; then
      git update-index --cacheinfo "160000,$recorded,$inner"
      echo "put $shown"
      continue
    fi
    [ "$sha" = "$staged" ] || git update-index --cacheinfo "160000,$sha,$inner"
    # The agent's own `git add --all` in the next turn would record the folder's commit: the mark keeps git from looking into it, as in
    # clones/take-in.sh.
    if [ -n "$made" ] && [ "$sha" != "$made" ] && [ "$(inside rev-parse HEAD)" = "$made" ]; then
      git update-index --skip-worktree -- "$inner"
    fi
    if [ -n "$(inside status --porcelain --ignore-submodules=none)" ]; then
      echo "left $shown"
    fi
  done
}
submodules="$(keep_submodules)"
printf '%s\n' "$submodules" | sed -n 's/^put /offstage-submodule /p; s/^left /offstage-submodule /p' >&2
# If nothing else was changed, there is nothing to commit, and no commit of the agent's says anything.
case "$submodules" in "put "* | *"
put "*)
  if [ "$(git write-tree)" = "$(git rev-parse "$OFFSTAGE_BEFORE^{tree}")" ]; then git reset --quiet --soft "$OFFSTAGE_BEFORE"; fi
  ;;
esac
# A merge that is under way counts also if its result is what was there before.
if [ -f "$(git rev-parse --git-path MERGE_HEAD)" ] || ! git diff --cached --quiet; then
  git commit --quiet --no-verify --no-gpg-sign --message "$OFFSTAGE_MESSAGE"
  echo "offstage-committed $(git rev-parse HEAD)" >&2
fi
head="$(git rev-parse HEAD)"
# Whether HEAD is on no branch, at an earlier commit of the session's: the agent only looked back (git bisect, git checkout).
looks_back() {
  ! git symbolic-ref --quiet HEAD > /dev/null && git merge-base --is-ancestor HEAD "refs/heads/$OFFSTAGE_BRANCH" 2> /dev/null
}
if { [ -z "$(newest "$head")" ] || looks_back; } &&
  git merge-base "refs/heads/$OFFSTAGE_BRANCH" "$OFFSTAGE_BASE" > /dev/null 2>&1; then
  if [ "$(git symbolic-ref --quiet HEAD)" != "refs/heads/$OFFSTAGE_BRANCH" ]; then
    git checkout --quiet --force "$OFFSTAGE_BRANCH" -- 2> /dev/null || true
  fi
  head="$(git rev-parse "refs/heads/$OFFSTAGE_BRANCH^{commit}")"
fi
# What the agent committed on other branches, or put aside (git stash), and is in nothing that counts, not even as the same change: named
# once.
if [ -n "${OFFSTAGE_TELLS:-}" ]; then
  told="$(git rev-parse --git-path offstage-told)"
  git for-each-ref --count=20 --format='%(objectname) %(refname)' refs/heads refs/stash | while read -r tip ref; do
    ! grep -qsx -e "$tip" -- "$told" || continue
    # shellcheck disable=SC2086 # each word is a commit
    more="$(git rev-list --max-count=1 --cherry-pick --right-only --no-merges "$head...$tip" --not $OFFSTAGE_KNOWN)" || continue
    [ -n "$more" ] || continue
    echo "$tip" >> "$told"
    echo "offstage-left-behind $ref" >&2
  done
fi
export_commit "$head"
