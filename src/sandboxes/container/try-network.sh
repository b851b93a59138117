# Run by bash alone, without another process: bash prints an error if an address can't be reached.
# Arguments: addresses as bash takes them after `/dev/tcp/`
exec 2>&1
# shellcheck disable=SC3025 # bash has them
for at; do if : 3<> "/dev/tcp/$at"; then echo "/dev/tcp/$at: connected"; fi; done
