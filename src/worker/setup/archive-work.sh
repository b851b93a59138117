# Archives what is not in git to stdout, with the exclude file that keeps it out, under a name that unpack-work.sh knows. A
# checked-out submodule is included, since git has only its commit.
set -eu
{
  git ls-files --others -z
  git -c core.quotePath=false ls-files --stage | grep '^160000' | while read -r _ _ _ inner; do
    if [ -e "$inner/.git" ]; then printf '%s\0' "$inner"; fi
  done
  if [ -d .git/modules ]; then printf '.git/modules\0'; fi
  printf '.git/info/exclude\0'
} | tar --create --file=- --null --verbatim-files-from --files-from=- --transform='s,^\.git/info/exclude$,.git/offstage-exclude,'
