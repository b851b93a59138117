# Restores a checkpoint's files into the session's clone as the agent left them: uncommitted, on its own HEAD. A merge that was
# under way goes on: what it merges is the second parent of the commit with all files.
#
# Environment: HOME, and
#   OFFSTAGE_CHECKPOINTS  the checkpoint repository, which has the packs
#   OFFSTAGE_COMMIT       commit with all files
#   OFFSTAGE_HEAD         the agent's HEAD
#   OFFSTAGE_STATE        commit with the state of a merge that was under way (pack-work.sh); empty if there is none, or in
#                         checkpoints of earlier versions
#   OFFSTAGE_MESSAGE      message of the commit that ends the merge
set -eu
objects="$(git rev-parse --path-format=absolute --git-path objects)"
mkdir -p "$objects/pack"
cp "$OFFSTAGE_CHECKPOINTS"/objects/pack/pack-* "$objects/pack/"
git reset --quiet --hard "$OFFSTAGE_COMMIT"
git reset --quiet --mixed "$OFFSTAGE_HEAD"
# Puts the sides of what collides into the index: an entry at stage 0 goes first.
put_stage() {
  git ls-tree -r -z "$OFFSTAGE_STATE:$1" | tr '\n\0' '\001\n' |
    LC_ALL=C sed "s/^\([0-9]*\) [a-z]* \([0-9a-f]*\)	/\1 \2 $1	/" | tr '\001\n' '\n\0' | git update-index -z --index-info
}
name=
if [ -n "$OFFSTAGE_STATE" ]; then
  name="$(git log -1 --format=%s "$OFFSTAGE_STATE" --)"
  git read-tree "$OFFSTAGE_STATE:0"
  for stage in 1 2 3; do put_stage "$stage"; done
  git update-index -q --refresh > /dev/null || true
  other="$(git rev-parse "$OFFSTAGE_STATE^1")"
elif other="$(git rev-parse --verify --quiet "$OFFSTAGE_COMMIT^2")"; then
  name=MERGE_HEAD
fi
case "$name" in MERGE_HEAD | CHERRY_PICK_HEAD)
  echo "$other" > "$(git rev-parse --git-path "$name")"
  printf '%s\n' "$OFFSTAGE_MESSAGE" > "$(git rev-parse --git-path MERGE_MSG)"
  ;;
esac
