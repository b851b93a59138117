line_break="$(printf '\001')"
# Calls a function for each submodule of a commit that is checked out here, with its path; a byte that names do not have stands for a
# line break in a name.
# Usage: each_gitlink <commit> <function>
each_gitlink() {
  [ -n "$(git ls-tree "$1" -- .gitmodules)" ] || return 0
  git ls-tree -r -z "$1" | tr '\n\0' '\001\n' | LC_ALL=C sed -n 's/^160000 commit [0-9a-f]*	//p' |
    while IFS= read -r inner; do
      # A process for each of thousands would take minutes.
      case "$inner" in *"$line_break"*)
        inner="$(printf '%s' "$inner" | tr '\001' '\n' && echo .)"
        inner="${inner%.}"
        ;;
      esac
      if [ -e "$inner/.git" ] && [ ! -L "$inner" ]; then "$2" "$inner"; fi
    done
}
# Whether a commit has a submodule at a path.
has_gitlink() {
  case "$(git ls-tree "$1" -- "$2")" in "160000 "*) return 0 ;; esac
  return 1
}
# Prints the commit that is checked out in the folder of a submodule, if that is the one with which it was made (clones/submodules.ts).
as_made() {
  made="$(git -C "$1" rev-parse --verify --quiet refs/remotes/origin/recorded)" || return 0
  if [ "$(git -C "$1" rev-parse HEAD 2> /dev/null)" = "$made" ]; then echo "$made"; fi
}
