/** The program's exit codes; `--help` and docs/configuration.md list them. */
export const exitCodes = {
  ok: 0,
  /** The server rejected the request or could not be reached, a check failed, or the followed session failed. */
  failed: 1,
  /** The command line or the configuration is wrong. */
  usage: 2,
  /** The followed session was cancelled. */
  cancelled: 3,
  /** Ctrl-C, or the output was closed; a session that was followed continues. */
  interrupted: 130,
} as const;

/** Help text that lists the exit codes. */
export const exitCodesHelp = `
Exit codes:
  0    done; with --follow: the session completed
  1    failed: the server refused or could not be reached, a check of doctor failed,
       or the followed session failed
  2    the command line or the configuration is wrong
  3    the followed session was cancelled
  130  interrupted; a session that was followed continues`;
