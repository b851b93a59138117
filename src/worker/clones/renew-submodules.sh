# Brings the folders of submodules to commits that others recorded, if nothing was done in them. It runs inside the sandbox, in the
# session's clone, since an agent may have changed anything there. What git ignores stays, unless the commit has files of their names, and
# so do branches and all that git has stored: nothing that was committed in a folder is lost. It can be repeated after a crash anywhere.
#
# Environment: HOME, and
#   OFFSTAGE_RENEWED  a folder of numbered folders, from 0, each a repository as it is to be (clones/submodules.ts); beside it, with its
#                     number in the name, `<n>-path` and `<n>-sha`, and `<n>-within`, the number of the superproject that it is in, which
#                     comes before it; empty: it is in the clone itself. A folder that has no repository is left out
# stdout: the numbers of those that are there now, one a line
set -eu
# Reads a file whose last line may be an empty one.
whole() {
  text="$(cat "$1" && echo .)"
  text="${text%.}"
}
# Whether the folder is a submodule in which nothing was done, or one whose renewal was cut off.
is_untouched() {
  [ -d "$1/.git" ] && [ ! -L "$1/.git" ] || return 1
  [ ! -f "$1/.git/offstage-renewing" ] || return 0
  [ -n "$(as_made "$1")" ] && [ -z "$(git -C "$1" status --porcelain --untracked-files=normal --ignore-submodules=none 2>&1)" ]
}
# Whether a folder is there without anything in it. It is made, unless something else is in its place.
is_empty() { mkdir -p -- "$1" 2> /dev/null && { [ -d "$1" ] && [ ! -L "$1" ] && [ -z "$(ls -A "$1")" ]; }; }
# Copies a repository's files without its own folder; its submodules are empty folders there.
copy_files() {
  for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    [ -e "$entry" ] || [ -L "$entry" ] || continue
    name="${entry##*/}"
    [ "$name" != .git ] || continue
    # Something that git ignores is in the way.
    cp -RPf "$entry" "$2/" 2> /dev/null || { rm -rf -- "${2:?}/$name" && cp -RPf "$entry" "$2/"; }
  done
}
renew() {
  new="$1/.git"
  old="$2/.git"
  : > "$old/offstage-renewing"
  find "$old" -name "*.lock" -type f -delete
  cp -RPf "$new/objects/." "$old/objects/"
  cat "$old/shallow" "$new/shallow" 2> /dev/null | sort -u > "$HOME/shallow" || true
  if [ -s "$HOME/shallow" ]; then cp "$HOME/shallow" "$old/shallow"; fi
  git -C "$2" ls-files --stage -z | tr '\n\0' '\001\n' | LC_ALL=C sed -n '/^160000 /d;s/^[^	]*	//p' | tr '\001\n' '\n\0' |
    (cd "$2" && xargs -0 rm -f --)
  # Nothing was done in submodules of it either, so those that are gone can go.
  cp -f "$new/index" "$HOME/index"
  git -C "$2" ls-files --stage | sed -n '/^160000 /s/^[^	]*	//p' | while IFS= read -r inner; do
    case "$(GIT_INDEX_FILE="$HOME/index" git -C "$2" ls-files --stage -- "$inner")" in "160000 "*) ;; *) rm -rf -- "${2:?}/$inner" ;; esac
  done
  copy_files "$1" "$2"
  cp -f "$HOME/index" "$old/index"
  git -C "$2" config remote.origin.url "$(git config --file "$new/config" remote.origin.url)"
  git -C "$2" update-ref --no-deref HEAD "$3"
  git -C "$2" update-ref refs/remotes/origin/recorded "$3"
  git -C "$2" update-index -q --refresh > /dev/null 2>&1 || true
  rm -f "$old/offstage-renewing"
}
left=" "
number=-1
while number=$((number + 1)) && [ -d "$OFFSTAGE_RENEWED/$number" ]; do
  from="$OFFSTAGE_RENEWED/$number"
  within="$(cat "$from-within")"
  sha="$(cat "$from-sha")"
  whole "$from-path"
  path="$text"
  # Programs would take such a name for options.
  case "$path" in -*) path="./$path" ;; esac
  case "$left" in *" ${within:-none} "*) left="$left$number "; continue ;; esac
  if [ ! -d "$from/.git" ]; then left="$left$number "; continue; fi
  # What is recorded in the clone may be another commit by now.
  if [ -z "$within" ] && [ "$(git rev-parse --verify --quiet ":$path")" != "$sha" ]; then left="$left$number "; continue; fi
  if is_empty "$path"; then
    cp -RPf "$from/." "$path/"
    git -C "$path" update-index -q --refresh > /dev/null 2>&1 || true
  elif is_untouched "$path"; then
    if [ "$(as_made "$path")" != "$sha" ] || [ -f "$path/.git/offstage-renewing" ]; then renew "$from" "$path" "$sha"; fi
  else
    left="$left$number "
    continue
  fi
  if [ -z "$within" ]; then git update-index --no-skip-worktree -- "$path"; fi
  echo "$number"
done
