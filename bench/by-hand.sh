#!/usr/bin/env bash
# The same work done by hand: clone, run the harness, commit, push, open the pull request.
# In: REPOSITORY_URL, API_URL, FORGE_TOKEN, BRANCH, PROMPT, HARNESS, and OpenCode's own settings.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export HOME="$folder/home" XDG_CONFIG_HOME="$folder/home" XDG_DATA_HOME="$folder/home" XDG_CACHE_HOME="$folder/home"
mkdir "$HOME"
basic=$(printf 'x:%s' "$FORGE_TOKEN" | base64 -w0)
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader GIT_CONFIG_VALUE_0="Authorization: Basic $basic"

git clone -q "$REPOSITORY_URL" "$folder/clone"
cd "$folder/clone"
git checkout -q -b "$BRANCH"
printf "%s" "$PROMPT" | "$HARNESS" run >"$folder/harness.log" 2>&1 || { cat "$folder/harness.log" >&2; exit 1; }
git add -A
git -c user.name=Someone -c user.email=someone@localhost commit -q -m "$PROMPT"
git push -q origin "$BRANCH"
curl -fsS -X POST "$API_URL" -H "Authorization: Bearer $FORGE_TOKEN" -H "Content-Type: application/json" \
  -d "{\"title\":\"By hand\",\"head\":\"$BRANCH\",\"base\":\"main\",\"body\":\"\"}" >/dev/null
