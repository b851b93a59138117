# Resets what a setup changed in tracked files, and excludes the files that it created from git: neither belongs in the pull
# request.
set -eu
rm -rf "$HOME/.offstage"
git reset --quiet --hard
mkdir -p "$(git rev-parse --git-dir)/info"
# A pattern is a line without a carriage return at its end: `?` stands for either in a name.
git ls-files --others --exclude-standard --directory -z | tr '\n\r\0' '\001\001\n' |
  LC_ALL=C sed 's/[][\\*?!# ]/\\&/g; s/^/\//' | tr '\001' '?' >> "$(git rev-parse --git-dir)/info/exclude"
