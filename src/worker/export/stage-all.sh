# Prints the folders into which git does not descend, one a line, with a byte that names do not have for a line break in a name.
# Names need be no text: with another locale grep would take the list for binary.
unvisited_folders() {
  git ls-files --others --exclude-standard -z | tr '\n\0' '\001\n' | LC_ALL=C grep '/$'
}

# Prints the folders in the working directory that are other worktrees of its repository, one a line.
inner_worktrees() {
  git worktree list --porcelain | sed -n "s|^worktree $PWD/||p"
}

# A function for programs that take the files of a broken repository with a separate one: sets the filter for files in
# LFS, with new contents where `take-contents.cjs` looks for them: in the repository that the agent has there, or in
# `.git` if it has none.
set_lfs_filter() {
  git config filter.lfs.process "$OFFSTAGE_LFS_FILTER"
  git config filter.lfs.required true
  common="$(env -u GIT_DIR -u GIT_WORK_TREE git rev-parse --path-format=absolute --git-common-dir 2> /dev/null)" || common="$PWD/.git"
  export OFFSTAGE_LFS_OWN="$common/lfs"
}

# In a clone that has some folders of its repository only (sparse checkout), a file elsewhere that the index has and the folder has
# not is none that was deleted. git marks such files, but the marks are lost with the index: this sets them again. If the agent
# chose other folders itself, what it deleted there is deleted.
#
# Argument: `always` if the index was just made; otherwise empty
# Environment: OFFSTAGE_SPARSE, what `info/sparse-checkout` was made with, and OFFSTAGE_SPARSE_HAS, an expression of the paths
# that are checked out; neither if the clone has everything
keep_outside() {
  [ -n "${OFFSTAGE_SPARSE:-}" ] || return 0
  if [ ! -f "$(git rev-parse --git-path index)" ]; then
    git read-tree HEAD
  elif [ "${1:-}" != always ]; then
    [ "$(git config --bool core.sparseCheckout)" = true ] || return 0
    [ "$(cat "$(git rev-parse --git-path info/sparse-checkout)" 2> /dev/null)" = "$OFFSTAGE_SPARSE" ] || return 0
    # A conflict takes no mark, and a clone in the middle of one has its index.
    [ -z "$(git ls-files --unmerged | head -n 1)" ] || return 0
  fi
  git ls-files --deleted -z | tr '\n\0' '\001\n' | LC_ALL=C grep -v -e "$OFFSTAGE_SPARSE_HAS" | tr '\001\n' '\n\0' |
    git update-index --skip-worktree -z --stdin
}

# Succeeds if git said in $1 that it could not look into a folder.
is_unread() {
  case "$1" in *"Permission denied"*) return 0 ;; esac
  return 1
}

# Adds what was changed to the index, by the list of an overlay's changes: the index is then as `git add --all` would leave it, and no
# other file is looked at. What is not in the list is as in the commit below, so only where the index differs from that it may have to
# be put back. Whatever needs more than that (other repositories or worktrees in it, merges, some folders only, marks that keep git from
# looking at files) is left to `git add --all`, and so is what git refuses.
#
# Environment: OFFSTAGE_CHANGES, the list's file (checkouts/list-changes.pl), and OFFSTAGE_CHECKOUT, the commit below; neither if the
# clone is a plain folder. Lists are made beside that file.
stage_changes() {
  [ -n "${OFFSTAGE_CHANGES:-}" ] && [ -f "$(git rev-parse --git-path index)" ] || return 1
  [ "$(git config --bool core.sparseCheckout)" != true ] || return 1
  [ -z "$(inner_worktrees | head -n 1)" ] || return 1
  # One name a line, with a byte that names hardly ever have for a line break in a name.
  ! LC_ALL=C grep -q "$(printf '\001')" "$OFFSTAGE_CHANGES" || return 1
  listed() { tr '\n\0' '\001\n' < "$OFFSTAGE_CHANGES" | LC_ALL=C sed -n "s/^[$1]//p"; }
  lines() { tr '\n\0' '\001\n' | LC_ALL=C sort -u; }
  names() { tr '\001\n' '\n\0'; }
  [ -z "$(listed n | head -n 1)" ] || return 1
  index="$OFFSTAGE_CHANGES-index"
  git diff-index --cached --raw -z --no-renames --ignore-submodules=none "$OFFSTAGE_CHECKOUT" -- > "$index" || return 1
  # Of each two lines the first has the state, of which U is an unresolved merge, and the second the name.
  ! tr '\n\0' '\001\n' < "$index" | sed -n 'p;n' | grep -q ' U$' || return 1
  listed wd > "$index-gone"
  if [ -s "$index" ] || [ -s "$index-gone" ]; then
    ! git ls-files -v | LC_ALL=C grep -q '^[a-z]' || return 1
  fi
  listed d | names > "$index-folders"
  : > "$index-inside"
  if [ -s "$index-folders" ]; then
    [ "$(tr -dc '\0' < "$index-folders" | wc -c)" -le 100 ] || return 1
    xargs -0 git --literal-pathspecs ls-files -z -- < "$index-folders" > "$index-inside" || return 1
    # A repository in the place of a file: git takes it for no repository as long as the index has the file.
    # shellcheck disable=SC2016 # the inner shell's variables
    xargs -0 sh -c 'for path; do [ ! -e "$path/.git" ] || exit 1; done' sh < "$index-inside" || return 1
    # A folder that it can't read has nothing for git, which only warns.
    xargs -0 git --literal-pathspecs ls-files --others --exclude-standard -z -- < "$index-folders" > "$index-new" 2> "$index-said" || return 1
    ! is_unread "$(cat "$index-said")" || return 1
    ! lines < "$index-new" | LC_ALL=C grep -q '/$' || return 1
    cat "$index-new" >> "$index-inside"
  fi
  # A difference in the index may be a file that the agent no longer wants tracked: if it is ignored, it stays out.
  { listed fw; tr '\n\0' '\001\n' < "$index" | sed -n 'n;p'; } | LC_ALL=C sort -u | names > "$index-files"
  : > "$index-ignored"
  if [ -s "$index-files" ]; then git check-ignore -z --stdin < "$index-files" > "$index-ignored" || [ $? = 1 ] || return 1; fi
  lines < "$index-ignored" > "$index-ignored-lines"
  {
    lines < "$index-files" | LC_ALL=C comm -23 - "$index-ignored-lines"
    lines < "$index-inside"
  } | LC_ALL=C sort -u | names |
    git update-index --add --remove --replace --ignore-skip-worktree-entries -z --stdin 2> "$index-said" || return 1
  # A name that leads into `.git` on some system it passes over, and succeeds.
  ! LC_ALL=C grep -q '^Ignoring path ' "$index-said"
}

# Has git descend into the repositories in the working directory that were made there.
visit_new_repositories() {
  while [ -n "$(unvisited_folders | while IFS= read -r inner; do
    inner="$(printf '%s' "$inner" | tr '\001' '\n' && echo .)"
    inner="${inner%.}"
    [ -d "$inner.git" ] || continue
    if git --git-dir="$inner.git" rev-parse --verify --quiet HEAD > /dev/null &&
      [ -n "$(git --git-dir="$inner.git" remote)" ]; then continue; fi
    # With one entry in the index git descends into it; the entry is removed at once, since there is no such file.
    git update-index --add --replace --cacheinfo "100644,$(git hash-object --stdin < /dev/null),$inner.offstage"
    echo found
  done)" ]; do :; done
}

# Takes files out of the index in whose place there is a repository now: as long as the index has them, git takes it for none, or
# records its commit alone. A submodule stays.
forget_replaced() {
  # Of each two lines the first has the modes, and the second the name.
  # shellcheck disable=SC2016 # the inner shell's variables
  git diff-files --diff-filter=DT -z | tr '\n\0' '\001\n' | LC_ALL=C sed -n '/^:160000 /{n;d;};n;p' | tr '\001\n' '\n\0' |
    xargs -0 sh -c 'for path; do [ ! -e "$path/.git" ] || printf "%s\0" "$path"; done' sh |
    git update-index --force-remove -z --stdin
}

# Adds every file that git takes, after it has refused all of them for the sake of some: a text without the encoding that the attributes
# name (`working-tree-encoding`), a file whose filter fails (`required`), a pipe in the place of a file, a name that leads into `.git` on
# some system. These stay in the index as they were, or out of it. Fails if there are too many, or if git refuses a file for another reason,
# such as a full disk. What the filter of files in LFS can't take is never left out.
#
# Environment: `sparse`, the option for that
# stderr, beside messages: for each of them `offstage-left-out <path>`, with a byte that names hardly ever have for a line break, and
# `offstage-left-out-why <words>` of git
add_what_can() {
  # By the files' times alone: with their contents git would look into what it refuses.
  # shellcheck disable=SC2016 # the inner shell's variables
  { git diff-files --name-only -z && git ls-files --others --exclude-standard -z; } | sparse="$sparse" xargs -0 -n 200 sh -c '
    add() { git --literal-pathspecs add --all $sparse -- "$@" 2>&1; }
    add "$@" > /dev/null && exit
    refused=0
    for path; do
      if said="$(add "$path")" || { [ ! -e "$path" ] && [ ! -L "$path" ]; }; then continue; fi
      refused=$((refused + 1))
      why="$(printf "%s\n" "$said" | LC_ALL=C grep -e "BOM is [a-z]* in " -e "failed to encode " -e "clean filter .* failed" \
        -e "^error: invalid path " -e "can only add regular files" | grep -v "clean filter .lfs." | head -n 1)"
      if [ -z "$why" ] || [ "$refused" -gt 100 ]; then exit 255; fi
      printf "offstage-left-out %s\noffstage-left-out-why %s\n" "$(printf %s "$path" | tr "\n" "\001")" "$why" >&2
    done' sh
}

# A function for programs that run among a session's files: adds everything in the working directory to the index. Files
# count in whatever state the agent left them:
# - a repository that the agent created inside is treated as an ordinary folder; git would refuse one without a commit, and
#   record only the commit of one with commits. A repository cloned from elsewhere stays a nested repository to git
# - another worktree of the same repository is left out
# - an unreadable file or folder is made readable
# - what git refuses is left out, and named (`add_what_can`)
stage_all() {
  ! stage_changes || return 0
  forget_replaced
  visit_new_repositories
  keep_outside ""
  # Without --sparse git refuses new files outside of a sparse checkout; a git that is too old for it knows no such refusal.
  sparse=
  if [ "$(git config --bool core.sparseCheckout)" = true ] && git add --sparse --dry-run > /dev/null 2>&1; then
    sparse=--sparse
  fi
  # Of a folder that it can't read, git says no more than a warning, and takes what is in it for not there.
  if ! refused="$(git add --all $sparse 2>&1 > /dev/null)" || is_unread "$refused"; then
    printf '%s\n' "$refused" >&2
    find . -name .git -prune -o -type d ! -perm -700 -exec chmod u+rwx {} \; -o -type f ! -perm -400 -exec chmod u+r {} + || true
    git add --all $sparse || add_what_can
  fi
  inner_worktrees | while IFS= read -r inner; do
    if [ -f "$inner/.git" ]; then git update-index --force-remove "$inner"; fi
  done
}
