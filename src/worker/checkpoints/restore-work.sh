# Restores a checkpoint's files into the session's clone as the agent left them: uncommitted, on its own HEAD. A merge that was
# under way goes on: what it merges is the second parent of the commit with all files.
#
# Environment: HOME, and
#   OFFSTAGE_CHECKPOINTS  the checkpoint repository, which has the packs
#   OFFSTAGE_COMMIT       commit with all files
#   OFFSTAGE_HEAD         the agent's HEAD
set -eu
objects="$(git rev-parse --path-format=absolute --git-path objects)"
mkdir -p "$objects/pack"
cp "$OFFSTAGE_CHECKPOINTS"/objects/pack/pack-* "$objects/pack/"
git reset --quiet --hard "$OFFSTAGE_COMMIT"
git reset --quiet --mixed "$OFFSTAGE_HEAD"
if merging="$(git rev-parse --verify --quiet "$OFFSTAGE_COMMIT^2")"; then
  echo "$merging" > "$(git rev-parse --git-path MERGE_HEAD)"
fi
