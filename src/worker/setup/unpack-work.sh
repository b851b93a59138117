# Unpacks an archive of archive-work.sh from stdin into another clone, and appends its exclude file to the clone's.
# Existing files stay: of the commit, of another repository's setup, and of an agent. Links are followed only within the
# sandbox, which has only the session's own folders. A submodule that is checked out at another commit than the one in the
# index would show as a change. Files that differ from the commit that the result was made of get the present time: they may have been
# checked out before it was made, and a build tool would take what was built of others for up to date.
# Environment: OFFSTAGE_MADE_OF, that commit
set -eu
umask 077
# tar's exit code 2: it skipped files; its messages say which.
tar --extract --file=- --no-same-owner --skip-old-files || [ $? = 2 ]
if [ -f .git/offstage-exclude ]; then
  mkdir -p .git/info
  cat .git/offstage-exclude >> .git/info/exclude
  rm -f .git/offstage-exclude
fi
git -c core.quotePath=false ls-files --stage | grep '^160000' | while read -r _ sha _ inner; do
  [ -e "$inner/.git" ] || continue
  if [ "$(git -C "$inner" rev-parse HEAD)" = "$sha" ] || git -C "$inner" checkout --quiet --force "$sha" 2> /dev/null; then continue; fi
  rm -rf "$inner"
  mkdir "$inner"
done
if [ "$(git rev-parse HEAD)" != "$OFFSTAGE_MADE_OF" ]; then
  git diff-tree -r -z --name-only --no-renames --diff-filter=d "$OFFSTAGE_MADE_OF" HEAD -- | xargs -0 -r touch -c -h --
fi
