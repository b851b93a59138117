/** The user that a sandbox's processes run as. */
export interface SandboxUser {
  readonly uid: number;
  readonly gid: number;
  /** Its home folder, by the path that the sandbox sees. */
  readonly home: string;
}

/** Contents of the two files in which programs look users and groups up (passwd(5), group(5)). */
export interface AccountFiles {
  readonly passwd: string;
  readonly group: string;
}

/**
 * The accounts that a sandbox has: its own user, which `whoami`, `os.userInfo()`, git and ssh look up, then `root` and
 * `nobody`, the owners of other files. They have none of the machine's accounts.
 */
export function accountsOf({ uid, gid, home }: SandboxUser): AccountFiles {
  // A colon or a line feed would end the field.
  const folder = /[:\n]/u.test(home) ? "/tmp" : home;
  return {
    passwd: [
      `agent:x:${uid}:${gid}:agent:${folder}:/bin/sh`,
      "root:x:0:0:root:/:/bin/sh",
      "nobody:x:65534:65534:nobody:/:/bin/sh",
      "",
    ].join("\n"),
    group: [`agent:x:${gid}:`, "root:x:0:", "nogroup:x:65534:", ""].join("\n"),
  };
}
