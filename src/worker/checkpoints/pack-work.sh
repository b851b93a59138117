# Commits everything in the folder on top of the agent's HEAD, and writes the new objects as a pack to stdout; needs `stage_all`
# (clones/stage-all.sh). What a merge under way merges is the commit's second parent. The agent keeps working meanwhile, so its
# index, refs and objects are not changed. If it broke its repository, its files are taken all the same, as when the work is
# exported.
#
# Environment: HOME, where only this program writes meanwhile, git's author and committer, and
#   OFFSTAGE_BASE    commit that the agent's history must share
#   OFFSTAGE_BEFORE  taken for HEAD if it does not
#   OFFSTAGE_KNOWN   commits whose objects are outside already, separated by spaces
#   OFFSTAGE_MIRROR, OFFSTAGE_CHECKPOINTS  object folders with those commits
#   OFFSTAGE_LAST    `<head> <tree>` of the last checkpoint, or nothing: nothing is packed if both are still the same
# stderr, beside messages: `offstage-checkpoint <head> <commit> <tree>` if anything is packed
set -eu
merging=
scratch="$HOME/pack"
rm -rf "$scratch"
mkdir -p "$scratch/objects"
if head="$(git rev-parse --verify --quiet HEAD)" && git merge-base "$head" "$OFFSTAGE_BASE" > /dev/null 2>&1; then
  own="$(git rev-parse --absolute-git-dir)"
  merging="$(git rev-parse --verify --quiet MERGE_HEAD || true)"
  if [ -f "$own/index" ]; then cp "$own/index" "$scratch/index"; fi
  objects="$(git rev-parse --path-format=absolute --git-path objects)"
else
  head="$OFFSTAGE_BEFORE"
  objects="$OFFSTAGE_MIRROR"
  export GIT_DIR="$scratch/repository" GIT_WORK_TREE="$PWD"
  case ${#OFFSTAGE_BASE} in 64) format=sha256 ;; *) format=sha1 ;; esac
  git init --quiet --object-format="$format"
fi
export GIT_INDEX_FILE="$scratch/index" GIT_OBJECT_DIRECTORY="$scratch/objects"
export GIT_ALTERNATE_OBJECT_DIRECTORIES="$objects:$OFFSTAGE_CHECKPOINTS:$OFFSTAGE_MIRROR"
stage_all
tree="$(git write-tree)"
if [ "$head $tree" != "$OFFSTAGE_LAST" ]; then
  commit="$(git commit-tree "$tree" -p "$head" ${merging:+-p "$merging"} -m checkpoint)"
  printf '%s\n' "$commit" $(printf '^%s ' $OFFSTAGE_KNOWN) | git pack-objects --quiet --revs --thin --stdout
  echo "offstage-checkpoint $head $commit $tree" >&2
fi
rm -rf "$scratch"
