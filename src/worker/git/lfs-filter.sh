# git's filter for files in LFS (gitattributes(5); git-lfs-spec(7)), without the program git-lfs, which an image need not have.
# Reads a file from stdin, and writes what git stores (clean) or what the folder gets (smudge) to stdout. New contents are kept in
# the clone, from where they are uploaded before the push; others are in the mirror's store, which is not writable here. A pointer
# whose content is in neither stays a pointer.
#
# Arguments: clean or smudge, the mirror's store
set -eu
pointer="version https://git-lfs.github.com/spec/v1"
store="$(git rev-parse --git-common-dir)/lfs"
mkdir -p "$store/tmp"
file="$(mktemp "$store/tmp/filter-XXXXXX")"
trap 'rm -f "$file"' EXIT
cat > "$file"
size="$(wc -c < "$file" | tr -d ' ')"
oid=
if [ "$size" -lt 1024 ] && [ "$(head -n 1 "$file" | tr -d '\000')" = "$pointer" ]; then
  oid="$(sed -n 's/^oid sha256:\([0-9a-f]\{64\}\)$/\1/p' "$file")"
fi
pathOf() { printf '%s/objects/%.2s/%.2s/%s' "$1" "$2" "${2#??}" "$2"; }
if [ "$1" = smudge ] && [ -n "$oid" ]; then
  for from in "$store" "$2"; do
    if [ -f "$(pathOf "$from" "$oid")" ]; then
      cat "$(pathOf "$from" "$oid")"
      exit
    fi
  done
fi
if [ "$1" = smudge ] || [ -n "$oid" ] || [ "$size" = 0 ]; then
  cat "$file"
  exit
fi
oid="$( (sha256sum || shasum -a 256) < "$file" 2> /dev/null)"
oid="${oid%% *}"
if [ ! -f "$(pathOf "$2" "$oid")" ]; then
  kept="$(pathOf "$store" "$oid")"
  mkdir -p "${kept%/*}"
  chmod 600 "$file"
  mv -f "$file" "$kept"
fi
printf '%s\noid sha256:%s\nsize %s\n' "$pointer" "$oid" "$size"
