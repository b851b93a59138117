# Resets what a setup changed in tracked files, and excludes the files that it created from git: neither belongs in the pull
# request.
set -eu
rm -rf "$HOME/.offstage"
git reset --quiet --hard
mkdir -p "$(git rev-parse --git-dir)/info"
git -c core.quotePath=false ls-files --others --exclude-standard --directory |
  sed 's/[][\\*?!# ]/\\&/g; s/^/\//' >> "$(git rev-parse --git-dir)/info/exclude"
