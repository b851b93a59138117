# Puts an agent's clone on the signed commit that stands for its own, so that its next commits follow it. The files are the same.
# It runs inside the sandbox, where the mirror's objects can be read. A clone that the agent broke stays as it is.
#
# Environment: HOME, and
#   OFFSTAGE_BRANCH    the session's work branch
#   OFFSTAGE_UNSIGNED  the agent's commit
#   OFFSTAGE_SIGNED    the signed one
for name in HEAD "refs/heads/$OFFSTAGE_BRANCH"; do
  if [ "$(git rev-parse --verify --quiet "$name")" = "$OFFSTAGE_UNSIGNED" ]; then
    git update-ref -m "offstage: signed" "$name" "$OFFSTAGE_SIGNED" "$OFFSTAGE_UNSIGNED"
  fi
done
exit 0
