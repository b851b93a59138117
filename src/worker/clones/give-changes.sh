# Gives what root wrote into a workspace that is an overlay to the workspace's owner. Nothing else is touched: the kernel would copy
# each file of the layers below whose owner is set, even to the one that it has. It runs outside of any sandbox, before an agent has
# seen the workspace.
# Arguments: the folder of changes, in which a deleted name is a device (overlayfs); the workspace; the owner as `<uid>:<gid>`
set -eu
find "$1" -uid 0 ! -type c -printf '%P\0' | {
  cd "$2"
  xargs -0 -r chown -h -- "$3"
}
