# Writes contents that the clone's LFS filter kept to stdout: for each a line `<oid> <bytes>` with the content after it. What is not
# there is left out.
#
# Environment: OFFSTAGE_OIDS, names of contents, separated by spaces
set -eu
store="$(git rev-parse --git-common-dir)/lfs/objects"
for oid in $OFFSTAGE_OIDS; do
  file="$store/$(printf '%.2s/%.2s/%s' "$oid" "${oid#??}" "$oid")"
  if [ -f "$file" ]; then
    echo "$oid $(wc -c < "$file" | tr -d ' ')"
    cat "$file"
  fi
done
