# Commits everything in the folder on top of the agent's HEAD, and writes the new objects as a pack to stdout; needs `stage_all`
# (export/stage-all.sh) and export/merge-state.sh. What a merge under way merges is the commit's second parent; which folders the
# agent has checked out, if not all, is in its message, as in git's `info/sparse-checkout`. The state of the merge is a commit of its
# own, whose message names it (`MERGE_HEAD` or `CHERRY_PICK_HEAD`), whose first parent is what it merges, and
# whose tree has the index: in the folder `0` what does not collide or is resolved, in `1`, `2` and `3` the sides of the rest
# (git-ls-files(1)). The agent keeps working meanwhile, so its
# index, refs and objects are not changed. If it broke its repository, its files are taken all the same, as when the work is
# exported.
#
# Environment: HOME, where only this program writes meanwhile, git's author and committer, and
#   OFFSTAGE_BASE    commit that the agent's history must share
#   OFFSTAGE_BEFORE  taken for HEAD if it does not
#   OFFSTAGE_KNOWN   commits whose objects are outside already, separated by spaces
#   OFFSTAGE_MIRROR, OFFSTAGE_CHECKPOINTS  object folders with those commits
#   OFFSTAGE_SPARSE, OFFSTAGE_SPARSE_HAS  see stage-all.sh
#   OFFSTAGE_CHECKOUT  see stage-all.sh: the list of changes is then on stdin
#   OFFSTAGE_LFS_FILTER  command of git's filter for files in LFS
#   OFFSTAGE_LAST    `<head> <tree> <state>` of the last checkpoint, or nothing: nothing is packed if all are still the same
#   OFFSTAGE_OURS    the session's commit in a join that the agent is to do by hand; may be empty
# stderr, beside messages: `offstage-checkpoint <head> <commit> <tree> <state>` if anything is packed; the state is `none` if no
# merge is under way
set -eu
# Writes an index with the entries of one stage of the agent's index, at stage 0. @returns its tree
stage_tree() (
  # shellcheck disable=SC2030 # for this function alone
  export GIT_INDEX_FILE="$scratch/stage"
  rm -f "$GIT_INDEX_FILE"
  GIT_INDEX_FILE="$scratch/index" git ls-files --stage -z |
    tr '\n\0' '\001\n' | LC_ALL=C sed -n "s/^\([0-9]* [0-9a-f]*\) $1	/\1 0	/p" | tr '\001\n' '\n\0' |
    git update-index -z --index-info
  git write-tree
)
# Commits the state of the merge that is under way, of which $1 is the name. @returns the commit
merge_state() (
  whole="$(for stage in 0 1 2 3; do printf '040000 tree %s\t%s\n' "$(stage_tree "$stage")" "$stage"; done | git mktree)"
  theirs="$(git rev-parse "$1^{commit}")"
  ours="$(git rev-parse --verify --quiet "${OFFSTAGE_OURS:-HEAD}^{commit}" || git rev-parse HEAD)"
  git commit-tree "$whole" -p "$theirs" -p "$ours" -m "$1"
)
merging=
going=
folders=
scratch="$HOME/pack"
rm -rf "$scratch"
mkdir -p "$scratch/objects"
OFFSTAGE_CHANGES=
if [ -n "${OFFSTAGE_CHECKOUT:-}" ]; then
  OFFSTAGE_CHANGES="$scratch/changes"
  cat > "$OFFSTAGE_CHANGES"
fi
if head="$(git rev-parse --verify --quiet HEAD)" && git merge-base "$head" "$OFFSTAGE_BASE" > /dev/null 2>&1; then
  own="$(git rev-parse --absolute-git-dir)"
  going="$(under_way)"
  # The agent may be ending it at this moment.
  case "$going" in MERGE_HEAD) merging="$(git rev-parse --verify --quiet MERGE_HEAD)" || going= ;; esac
  if [ -f "$own/index" ]; then
    # With its time: git compares the contents of files that were changed within the second in which the index was written.
    cp -p "$own/index" "$scratch/index"
  else
    # The state of the merge is unknown. In a sparse clone its other files are nowhere else either: it has to begin
    # again.
    going=
    [ -z "${OFFSTAGE_SPARSE:-}" ] || merging=
  fi
  if [ "$(git config --bool core.sparseCheckout)" = true ]; then
    folders="$(cat "$(git rev-parse --git-path info/sparse-checkout)" 2> /dev/null || true)"
  fi
  objects="$(git rev-parse --path-format=absolute --git-path objects)"
else
  OFFSTAGE_CHANGES=
  head="$OFFSTAGE_BEFORE"
  objects="$OFFSTAGE_MIRROR"
  folders="${OFFSTAGE_SPARSE:-}"
  export GIT_DIR="$scratch/repository" GIT_WORK_TREE="$PWD"
  case ${#OFFSTAGE_BASE} in 64) format=sha256 ;; *) format=sha1 ;; esac
  git init --quiet --object-format="$format"
  set_lfs_filter
fi
# shellcheck disable=SC2031 # here for all that follows
export GIT_INDEX_FILE="$scratch/index" GIT_OBJECT_DIRECTORY="$scratch/objects"
export GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects:$OFFSTAGE_CHECKPOINTS:$OFFSTAGE_MIRROR"
# Current dates would make another commit of the same state each time.
state=none
if [ -n "$going" ]; then
  state="$(GIT_AUTHOR_DATE='@0 +0000' GIT_COMMITTER_DATE='@0 +0000' merge_state "$going")" || state=none
fi
if [ -n "${OFFSTAGE_SPARSE:-}" ] && [ ! -f "$GIT_INDEX_FILE" ]; then
  git read-tree "$head"
  keep_outside always
fi
stage_all
tree="$(git write-tree)"
if [ "$head $tree $state" != "$OFFSTAGE_LAST" ]; then
  commit="$(git commit-tree "$tree" -p "$head" ${merging:+-p "$merging"} -m checkpoint ${folders:+-m "$folders"})"
  packed="$commit"
  if [ "$state" != none ]; then packed="$commit $state"; fi
  # shellcheck disable=SC2086,SC2046 # each word is a commit
  printf '%s\n' $packed $(printf '^%s ' $OFFSTAGE_KNOWN) | git pack-objects --quiet --revs --thin --stdout
  echo "offstage-checkpoint $head $commit $tree $state" >&2
fi
rm -rf "$scratch"
