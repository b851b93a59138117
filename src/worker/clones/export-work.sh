# Takes a repository's work out of the sandbox; needs `stage_all` (stage-all.sh). It runs inside, where the agent's hooks and
# settings can do no more than the agent could. Nothing else runs there by then: a lock file is a leftover of a killed git, and would
# stop every later one. If the agent broke its repository or began another one, its files still count, on top of the last
# known commit.
# The program commits what is uncommitted, writes all new objects as a pack to stdout (nothing if there are none), and reports
# the commit that counts. That is HEAD, on whatever branch; if HEAD has nothing new, the agent only checked it out, and the
# session's branch counts, which may also have gone back.
#
# Environment: HOME, git's author and committer, and
#   OFFSTAGE_BASE     commit that the agent's history must share
#   OFFSTAGE_BEFORE   the last known commit
#   OFFSTAGE_KNOWN    commits whose objects are outside already, separated by spaces
#   OFFSTAGE_BRANCH   the session's work branch
#   OFFSTAGE_OBJECTS  the mirror's object folder
#   OFFSTAGE_MESSAGE  message of the commit of what is uncommitted
# stderr, beside messages: `offstage-committed <commit>` of what was uncommitted, and `offstage-head <commit>`
set -eu
if ! git merge-base HEAD "$OFFSTAGE_BASE" > /dev/null 2>&1; then
  export GIT_DIR="$HOME/.offstage-repository" GIT_WORK_TREE="$PWD"
  rm -rf "$GIT_DIR"
  case ${#OFFSTAGE_BASE} in 64) format=sha256 ;; *) format=sha1 ;; esac
  git init --quiet --object-format="$format"
  echo "$OFFSTAGE_OBJECTS" > "$GIT_DIR/objects/info/alternates"
  git update-ref HEAD "$OFFSTAGE_BEFORE"
  git read-tree HEAD
fi
find "$(git rev-parse --git-dir)" -name "*.lock" -type f -delete
stage_all
if ! git diff --cached --quiet; then
  git commit --quiet --no-verify --no-gpg-sign --message "$OFFSTAGE_MESSAGE"
  echo "offstage-committed $(git rev-parse HEAD)" >&2
fi
newest() { git rev-list --max-count=1 "$1" --not $OFFSTAGE_KNOWN; }
head="$(git rev-parse HEAD)"
if [ -z "$(newest "$head")" ] && git merge-base "refs/heads/$OFFSTAGE_BRANCH" "$OFFSTAGE_BASE" > /dev/null 2>&1; then
  if [ "$(git symbolic-ref --quiet HEAD)" != "refs/heads/$OFFSTAGE_BRANCH" ]; then
    git checkout --quiet --force "$OFFSTAGE_BRANCH" -- 2> /dev/null || true
  fi
  head="$(git rev-parse "refs/heads/$OFFSTAGE_BRANCH^{commit}")"
fi
if [ -n "$(newest "$head")" ]; then
  printf '%s\n' "$head" $(printf '^%s ' $OFFSTAGE_KNOWN) | git pack-objects --quiet --revs --thin --stdout
fi
echo "offstage-head $head" >&2
