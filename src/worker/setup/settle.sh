# Resets what a setup changed in tracked files, and excludes the files that it created from git: neither belongs in the pull
# request.
set -eu
rm -rf "$HOME/.offstage"
git reset --quiet --hard
exclude_created() {
  mkdir -p "$(git rev-parse --git-dir)/info"
  # A pattern is a line without a carriage return at its end: `?` stands for either in a name.
  git ls-files --others --exclude-standard --directory -z | tr '\n\r\0' '\001\001\n' |
    LC_ALL=C sed 's/[][\\*?!# ]/\\&/g; s/^/\//' | tr '\001' '?' >> "$(git rev-parse --git-dir)/info/exclude"
}
exclude_created
# The same in submodules: what a session changes there is reported to its user.
git -c core.quotePath=false ls-files --stage | grep '^160000' | while read -r _ _ _ inner; do
  if [ -e "$inner/.git" ]; then (cd "./$inner" && git reset --quiet --hard && exclude_created); fi
done
