import { shellQuote } from "../../programs/shell-quote.ts";
import { SessionError } from "../../domain/errors/errors.ts";
import type { PinnedHost } from "./remote-address.ts";

/** How git reaches hosts by ssh. The keys stay outside of every sandbox. */
export interface SshSettings {
  /** Path of the private key for each host (`git.example.com`, or `git.example.com:2222` for that port alone). */
  readonly keys: Readonly<Record<string, string>>;
  /** Path of the file with the keys of hosts (sshd(8), section SSH_KNOWN_HOSTS FILE FORMAT); null: the user's own. */
  readonly knownHosts: string | null;
  /** Socket of an ssh agent; null: none. */
  readonly agent: string | null;
}

/** Without configured keys: those of the user that runs the server. */
export const usersSsh: SshSettings = { keys: {}, knownHosts: null, agent: null };

/**
 * ssh gives up a connection whose other end is gone: otherwise it waits for hours. No file of settings is read, neither the
 * user's nor the system's, nothing is asked, and only a host whose key is known is talked to.
 */
const always = [
  ["-F", "/dev/null"],
  ["-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oUpdateHostKeys=no", "-oProxyCommand=none", "-oForwardAgent=no"],
  ["-oConnectTimeout=30", "-oServerAliveInterval=15", "-oServerAliveCountMax=8"],
].flat();

/**
 * Environment variables with which git starts ssh (git(1), GIT_SSH_COMMAND).
 * @param remote null: no remote is contacted
 */
export function sshVariables(
  settings: SshSettings,
  remote: { readonly url: string; readonly pinned: PinnedHost | null } | null,
): Record<string, string> {
  const { keys, knownHosts, agent } = settings;
  const place = remote === null ? null : placeOf(remote.url);
  const key = place === null ? undefined : (keys[`${place.host}:${place.port}`] ?? keys[place.host]);
  const pinned = remote?.pinned ?? null;
  const words = [
    "ssh",
    ...always,
    ...(knownHosts === null ? [] : [`-oUserKnownHostsFile="${escaped(knownHosts)}"`]),
    // With this the agent gives no other key than the named one.
    ...(key === undefined ? [] : ["-oIdentitiesOnly=yes", `-oIdentityFile="${escaped(key)}"`]),
    ...(pinned === null ? [] : [`-oHostName=${pinned.address ?? pinned.host}`, `-oHostKeyAlias=${nameOf(pinned)}`]),
  ];
  return {
    GIT_SSH_COMMAND: words.map(shellQuote).join(" "),
    ...(agent !== null && { SSH_AUTH_SOCK: agent }),
  };
}

/** `%` begins a placeholder in ssh's settings (ssh_config(5), section TOKENS). */
const escaped = (path: string): string => path.replaceAll("%", "%%");

/** A host as files of known hosts name it. */
const nameOf = ({ host, port }: PinnedHost): string => (port === 22 ? host : `[${host}]:${port}`);

/** Host and port of an address for ssh (`ssh://git@host:port/path`, `git@host:path`); null for any other. */
function placeOf(url: string): { readonly host: string; readonly port: number } | null {
  if (/^https?:|^\/|^file:/u.test(url)) return null;
  const written = url.includes("://") ? url : `ssh://${url.slice(0, url.indexOf(":"))}/`;
  const parsed = URL.parse(written);
  if (parsed === null) return null;
  return { host: parsed.hostname.toLowerCase().replace(/^\[|\]$/gu, ""), port: Number(parsed.port) || 22 };
}

/**
 * The failure for ssh's error about a remote; null if it is not one of ssh's.
 * @param said by git and ssh, on stderr
 */
export function sshError(url: string, said: string): SessionError | null {
  const place = placeOf(url);
  if (place === null) return null;
  const { host } = place;
  if (/REMOTE HOST IDENTIFICATION HAS CHANGED/u.test(said)) {
    return unreachable(
      `The host ${host} showed another ssh key than the one that is known for it: it was set up anew, or another answers in its place.`,
      "Compare its key with what its operator publishes, then correct the file of known hosts (OFFSTAGE_SSH_KNOWN_HOSTS).",
    );
  }
  if (/Host key verification failed|No \S+ host key is known for/u.test(said)) {
    return unreachable(
      `The ssh key of the host ${host} is not known to this server, so it does not talk to it.`,
      `Add the host's key to the file of known hosts (OFFSTAGE_SSH_KNOWN_HOSTS): \`ssh-keyscan ${place.port === 22 ? "" : `-p ${place.port} `}${host}\` prints it, to be compared with what its operator publishes.`,
    );
  }
  if (/UNPROTECTED PRIVATE KEY FILE/u.test(said)) {
    return unreachable(
      `The ssh key for the host ${host} may be read by other users of the worker, so ssh does not use it.`,
      "Give the key's file to the user that runs Offstage alone: `chmod 600`.",
    );
  }
  if (/Permission denied \(|Too many authentication failures/u.test(said)) {
    return new SessionError({
      code: "repository_access_denied",
      reason: `The host ${host} accepted none of this server's ssh keys for ${url}.`,
      retryable: false,
      remedy: "Name the host's key in OFFSTAGE_SSH_KEYS, and give its public half access on the host (docs/forges.md).",
    });
  }
  if (
    /(?:cannot run|unable to fork|\bsh: .*)\s*'?ssh'?: ?(?:not found|No such file)|ssh: (?:command )?not found/u.test(
      said,
    )
  ) {
    return unreachable(
      `The repository ${url} is reached by ssh, which is not installed on the worker.`,
      "Install OpenSSH's client on the worker (for example `apt-get install openssh-client`), or use the https:// address.",
    );
  }
  return null;
}

function unreachable(reason: string, remedy: string): SessionError {
  return new SessionError({ code: "repository_unreachable", reason, retryable: false, remedy });
}
