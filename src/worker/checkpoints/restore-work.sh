# Restores a checkpoint's files into the session's clone as the agent left them: uncommitted, on its own HEAD. A merge that was
# under way goes on: what it merges is the second parent of the commit with all files. If not all folders are checked out, those are
# that the agent had; they are in that commit's message. What it changed is there in any case: a file that is only in the index would
# lose its change.
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
file="$(git rev-parse --git-path info/sparse-checkout)"
if [ "$(git config --bool core.sparseCheckout)" = true ]; then
  folders="$(git log -1 --format=%b "$OFFSTAGE_COMMIT")"
  if [ -z "$folders" ]; then
    git sparse-checkout disable
  elif [ "$folders" != "$(cat "$file")" ]; then
    printf '%s\n' "$folders" > "$file"
  fi
fi
# git would leave the folders of submodules that the work no longer has, and the next `git add --all` would bring them back. The clone is
# fresh: nothing of the agent's is in them.
remove_gone() {
  if ! has_gitlink "$OFFSTAGE_COMMIT" "$1"; then rm -rf -- "$1"; fi
}
each_gitlink HEAD remove_gone
git reset --quiet --hard "$OFFSTAGE_COMMIT"
is_sparse() { [ "$(git config --bool core.sparseCheckout)" = true ]; }
# Lists of names, one a line, with a byte that names do not have for a line break in a name.
lines() { tr '\n\0' '\001\n' | LC_ALL=C sort -u; }
names() { tr '\001\n' '\n\0'; }
kept="$HOME/kept-files"
if is_sparse; then
  git ls-tree -r -z --full-tree --name-only "$OFFSTAGE_COMMIT" | lines > "$kept"
  differing() { git diff-tree -r -z --name-only --no-commit-id --no-renames "$@" "$OFFSTAGE_COMMIT"; }
  # In a merge, what is neither as in HEAD nor as in the other commit, which changed more elsewhere than is checked out; and what is not
  # as in the index: a file that collides may be as one side has it.
  if [ -z "$OFFSTAGE_STATE" ]; then differing "$OFFSTAGE_HEAD"; else differing -c && differing "$OFFSTAGE_STATE:0"; fi |
    lines | LC_ALL=C comm -12 - "$kept" | names > "$HOME/changed-files"
  git update-index --no-skip-worktree -z --stdin < "$HOME/changed-files"
  git checkout-index --force -z --stdin < "$HOME/changed-files"
  rm "$HOME/changed-files"
fi
git reset --quiet --mixed "$OFFSTAGE_HEAD"
# A file that is deleted and not checked out is deleted in the index alone.
if [ -z "$OFFSTAGE_STATE" ] && is_sparse; then
  git ls-files -t -z | tr '\n\0' '\001\n' | LC_ALL=C sed -n 's/^S //p' | LC_ALL=C sort -u | LC_ALL=C comm -23 - "$kept" | names |
    git update-index --force-remove -z --stdin
fi
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
  # Files that the agent had not checked out have lost their mark: the commit with all files has them, and the folder
  # does not.
  if is_sparse; then
    git ls-files --deleted -z | lines | LC_ALL=C comm -12 - "$kept" | names | git update-index --skip-worktree -z --stdin
  fi
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
rm -f "$kept"
