import { describe, expect, it, vi } from "vitest";
import { ConflictError, InvalidInputError, NotFoundError } from "../domain/errors/errors.ts";
import type { Check, Commands, Terminal } from "./terminal/commands.ts";
import { runCommandLine } from "./program.ts";

const key = {
  id: "3f0c5d3e-8a57-4f0e-9d4f-0d9f6ad1c001",
  name: "laptop",
  prefix: "ofs_abc",
  scopes: ["read", "write"] as ("read" | "write")[],
  automationIds: null,
  createdAt: "2026-01-01T00:00:00.000Z",
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  owner: { id: "9a1f0c5d-8a57-4f0e-9d4f-0d9f6ad1c002", name: "Ada" },
};

const organization = {
  id: "3f0c5d3e-8a57-4f0e-9d4f-0d9f6ad1c003",
  name: "ac\u001B[31mme",
  createdAt: "2026-01-01T00:00:00.000Z",
  usesServerForges: false,
  members: 2,
  sessions: 10_000,
  lastSessionAt: null,
};

/** Runs a command line with handlers that note what they were called with. */
async function program(argv: string[], given: Partial<Commands> = {}, environment: Record<string, string> = {}) {
  const calls: unknown[][] = [];
  const noted =
    <T>(name: string, answer: T) =>
    async (...values: unknown[]): Promise<T> => {
      calls.push([name, ...values]);
      return answer;
    };
  const report = {
    tables: 2,
    rows: 1,
    takenAt: "2026-01-01T00:00:00.000Z",
    migration: 30,
    masterKey: { source: "/data/master.key", inFile: true, isThere: true },
  };
  const commands: Commands = {
    start: noted("start", undefined),
    doctor: noted("doctor", []),
    createKey: noted("createKey", { record: key, key: "ofs_secret" }),
    listKeys: noted("listKeys", [key]),
    revokeKey: noted("revokeKey", key),
    replay: noted("replay", { different: [], unused: 0 }),
    rotateMasterKey: noted("rotateMasterKey", 3),
    backUp: noted("backUp", { ...report, bytes: 12_345 }),
    restore: noted("restore", report),
    move: noted("move", report),
    exportOrganization: noted("exportOrganization", { bytes: 12_345 }),
    createOrganization: noted("createOrganization", { name: "acme", invitation: null, adminKey: "ofs_secret" }),
    listOrganizations: noted("listOrganizations", [organization]),
    eraseOrganization: noted("eraseOrganization", true),
    createLoginLink: noted("createLoginLink", "http://127.0.0.1:4747/sign-in#token"),
    ...given,
  };
  let out = "";
  let err = "";
  const { signal } = new AbortController();
  const terminal: Terminal = {
    write: (text) => void (out += text),
    warn: (text) => void (err += text),
    color: false,
    columns: null,
    readInput: () => Promise.resolve(""),
    readSecret: () => Promise.resolve(""),
    isInteractive: false,
    openPage: () => Promise.resolve(false),
    environment,
    workingDirectory: "/home/someone/project",
    signal,
  };
  return { code: await runCommandLine(commands, terminal, "1.2.3", argv), out, err, calls, signal };
}

describe("offstage", () => {
  it("starts the service if no command is named, with the flags given", async () => {
    const { code, calls, signal } = await program(["--data", "/srv/offstage", "--port", "0"]);
    expect(code).toBe(0);
    expect(calls).toEqual([["start", { data: "/srv/offstage", port: "0" }, signal, "all"]]);
  });

  it("loads no other command if it starts a server", async () => {
    let loaded = 0;
    vi.doMock("./other-commands.ts", () => {
      loaded += 1;
      return { addOtherCommands: () => undefined };
    });
    try {
      for (const argv of [[], ["start"], ["api"], ["worker"]]) expect(await program(argv)).toMatchObject({ code: 0 });
      expect(loaded).toBe(0);
      await program(["--help"]);
      expect(loaded).toBe(1);
    } finally {
      vi.doUnmock("./other-commands.ts");
    }
  });

  it.each([
    ["an unknown flag", ["start", "--prot", "1"], "unknown option '--prot'"],
    ["an unknown flag without a command", ["--nope"], "unknown option '--nope'"],
    ["an unknown command", ["strat"], "there is no command 'strat'; the commands are start, api"],
    ["a flag of another command", ["doctor", "--port", "1"], "unknown option '--port'"],
    ["an argument that is missing", ["run"], "missing required argument 'prompt'"],
    ["a scope that does not exist", ["keys", "create", "--scopes", "read,root"], '"root" is not a scope'],
    ["a key that is no id", ["keys", "revoke", "laptop"], "must be a key's id"],
    ["an automation that is no id", ["keys", "create", "--automation", "fix"], "must be an automation's id"],
    ["automations of a key that may do more", ["keys", "create", "--automation", key.id], "--scopes trigger alone"],
    ["a time out of range", ["login-link", "--minutes", "0"], "whole number"],
    ["run without a key", ["run", "do it"], "OFFSTAGE_API_KEY"],
    [
      "changes of a checkout for another repository",
      ["run", "do it", "--key", "k", "--with-changes", "--repository", "x"],
      "--with-changes",
    ],
    ["run with a server that is no address", ["run", "do it", "--key", "k", "--server", "here"], "--server"],
    ["a password in the server's address", ["list", "--key", "k", "--server", "http://a:b@localhost"], "no password"],
    ["more than the server's address", ["list", "--key", "k", "--server", "http://localhost/?a=b"], "no ?"],
    ["a key that no header can carry", ["list", "--key", "clé"], "no API key"],
  ])("ends with 2 at %s", async (_case, argv, message) => {
    const { code, err, calls } = await program(argv);
    expect(code).toBe(2);
    expect(err).toContain(message);
    expect(calls).toEqual([]);
  });

  it.each([
    [["--help"]],
    [["start", "--help"]],
    [["run", "--help"]],
    [["doctor", "--help"]],
    [["keys", "create", "--help"]],
  ])("answers %j on stdout with 0", async (argv) => {
    const { code, out, calls } = await program(argv);
    expect(code).toBe(0);
    expect(out).toContain("Usage: offstage");
    expect(calls).toEqual([]);
  });

  it("documents its exit codes and its version", async () => {
    expect((await program(["--help"])).out).toContain("Exit codes:");
    expect((await program(["run", "--help"])).out).toContain("Exit codes:");
    expect((await program(["--version"])).out).toBe("1.2.3\n");
  });

  it.each([
    [new InvalidInputError("OFFSTAGE_PORT: must be a number"), 2],
    [new NotFoundError("key 1 was not found"), 1],
    [new ConflictError("taken"), 1],
    [new TypeError("a fault of ours"), 1],
  ])("reports %s and ends with %i", async (error, expected) => {
    const { code, err } = await program(["keys", "list"], { listKeys: () => Promise.reject(error) });
    expect(code).toBe(expected);
    expect(err).toContain(error.message);
  });
});

it("lets nothing of an error's words control the terminal", async () => {
  const words = "remote: \u001b[2Jdenied\u009b";
  const { err } = await program(["keys", "list"], { listKeys: () => Promise.reject(new ConflictError(words)) });
  expect(err).toBe("offstage: remote: denied\n");
});

describe("offstage doctor", () => {
  const found: Check = { name: "git", ok: true, detail: "2.39.5", remedy: null };
  const absent: Check = { name: "gemini", ok: false, detail: "not installed", remedy: "npm i -g it", optional: true };
  const missing: Check = { name: "sandbox", ok: false, detail: "no bwrap", remedy: "apt-get install bubblewrap" };

  it("prints each check with its remedy, and is content if only something optional is absent", async () => {
    const { code, out } = await program(["doctor"], { doctor: () => Promise.resolve([found, absent]) });
    expect(code).toBe(0);
    expect(out).toBe("ok       git     2.39.5\nabsent   gemini  not installed\n                 → npm i -g it\n");
  });

  it("ends with 1 if something is missing", async () => {
    const { code, out } = await program(["doctor"], { doctor: () => Promise.resolve([found, missing]) });
    expect(code).toBe(1);
    expect(out).toContain("→ apt-get install bubblewrap");
  });
});

describe("offstage keys and login-link", () => {
  it("prints the new key alone on stdout", async () => {
    const { out, err, calls } = await program(["keys", "create", "--name", "ci", "--scopes", "write", "--data", "/d"]);
    expect(out).toBe("ofs_secret\n");
    expect(err).toContain("this once");
    expect(calls).toEqual([
      [
        "createKey",
        { data: "/d" },
        { name: "ci", scopes: ["write"], automationIds: null, expiresAt: null, owner: null },
      ],
    ]);
    const owned = await program(["keys", "create", "--owner", "ada@example.com"]);
    expect(owned.calls[0]?.[2]).toMatchObject({ owner: "ada@example.com" });
  });

  it("lets a key expire in days from now", async () => {
    const { calls } = await program(["keys", "create", "--expires-in-days", "2"]);
    const [, , created] = calls[0] as [string, unknown, { expiresAt: string }];
    const days = (Date.parse(created.expiresAt) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(1.99);
    expect(days).toBeLessThanOrEqual(2);
  });

  it("lists keys without the keys themselves, and revokes one", async () => {
    expect((await program(["keys", "list"])).out).toMatch(/ofs_abc….*read,write.*active.*Ada.*laptop/u);
    const { calls } = await program(["keys", "revoke", key.id]);
    expect(calls).toEqual([["revokeKey", {}, key.id]]);
  });

  it("hands on every automation that is named, and prints no control character of a name", async () => {
    const ids = [key.id, key.owner.id];
    const { calls } = await program(["keys", "create", "--scopes", "trigger", "--automation", ...ids]);
    expect(calls[0]?.[2]).toMatchObject({ automationIds: ids });
    const named = { ...key, name: "a\u001b[2J\nb" };
    const { out } = await program(["keys", "revoke", key.id], { revokeKey: () => Promise.resolve(named) });
    expect(out).toBe("revoked ofs_abc… (a b)\n");
  });

  it("lists a key whatever was put into its name", async () => {
    const name = "\u001b[2J\u001b]0;title\u0007ci\nof mine";
    const { out } = await program(["keys", "list"], { listKeys: () => Promise.resolve([{ ...key, name }]) });
    expect(out).toMatch(/ {2}ci of mine\n$/u);
    expect(out).not.toContain("\u001b");
  });

  it("prints the link, good for the minutes asked for", async () => {
    const { out, calls } = await program(["login-link", "--minutes", "5", "--scopes", "read"]);
    expect(out).toBe("http://127.0.0.1:4747/sign-in#token\n");
    expect(calls).toEqual([["createLoginLink", {}, { scopes: ["read"], ttlMs: 300_000 }]]);
  });
});

describe("offstage backup, restore and move", () => {
  it("say where the master key is, which is in none of them", async () => {
    const backup = await program(["backup", "/backup/a", "--data", "/data"]);
    expect(backup.calls).toEqual([["backUp", { data: "/data" }, "/backup/a", backup.signal]]);
    expect(backup.out).toBe(
      "Backed up 1 row of 2 tables at migration 30 to /backup/a (13 kB).\nThe master key is not in it: keep /data/master.key too, apart from the backup.\n",
    );
    expect((await program(["restore", "/backup/a"])).out).toContain("check that /data/master.key has it");
    const move = await program(["move", "postgres://db/offstage"]);
    expect(move.calls).toEqual([["move", {}, "postgres://db/offstage", move.signal]]);
    expect(move.out).toContain("DATABASE_URL");
    expect(move.out).toContain("OFFSTAGE_MASTER_KEY to the lines of /data/master.key");
  });

  it("name the variable if the key is in one", async () => {
    const masterKey = { source: "OFFSTAGE_MASTER_KEY", inFile: false, isThere: false };
    const report = { tables: 2, rows: 3, takenAt: "2026-01-01T00:00:00.000Z", migration: 30, masterKey, bytes: 1 };
    const backUp = (): Promise<typeof report> => Promise.resolve(report);
    expect((await program(["backup", "a"], { backUp })).out).toContain("keep the value of OFFSTAGE_MASTER_KEY");
    expect((await program(["move", "postgres://b"], { move: backUp })).out).toContain("as it is set now");
  });
});

describe("offstage organization", () => {
  it("creates one with an admin who is invited, or with an admin key, and prints nothing else to stdout", async () => {
    const byKey = await program(["organization", "create", "acme", "--data", "/d"]);
    expect(byKey.calls).toEqual([
      ["createOrganization", { data: "/d" }, { name: "acme", admin: null, usesServerForges: false }],
    ]);
    expect([byKey.out, byKey.err]).toEqual([
      "ofs_secret\n",
      "Created acme. Its admin key is shown only this once: keep it now.\n",
    ]);
    const url = "http://127.0.0.1:4747/sign-in#token";
    const invitation = { url, expiresAt: "2026-01-08T00:00:00.000Z", mailedTo: "ada@example.com" };
    const createOrganization = vi.fn<Commands["createOrganization"]>(() =>
      Promise.resolve({ name: "acme", invitation, adminKey: null }),
    );
    const invited = await program(["organization", "create", "acme", "--email", "ada@example.com", "--server-forges"], {
      createOrganization,
    });
    const admin = { name: "ada@example.com", email: "ada@example.com" };
    expect(createOrganization).toHaveBeenCalledWith({}, { name: "acme", admin, usesServerForges: true });
    expect(invited.out).toBe(`${url}\n`);
    expect(invited.err).toMatch(/^Created acme\. The link .* is mailed to ada@example\.com\.\n$/u);
  });

  it("lists all, with nothing of a name that a terminal would obey", async () => {
    const { out } = await program(["organization", "list"]);
    expect(out).toMatch(/^NAME +MEMBERS +SESSIONS +LAST SESSION +ID\n\S+me +2 +10000\+ +- +3f0c5d3e-/u);
    expect(out).not.toContain("\u001B");
  });

  it("is named for keys and links, which are the server's own otherwise", async () => {
    const flags = { organization: "acme" };
    for (const [name, argv] of [
      ["createKey", ["keys", "create"]],
      ["listKeys", ["keys", "list"]],
      ["revokeKey", ["keys", "revoke", key.id]],
      ["createLoginLink", ["login-link"]],
    ] as const) {
      const { calls } = await program([...argv, "--organization", "acme"]);
      expect(calls[0]?.slice(0, 2)).toEqual([name, flags]);
    }
  });

  it("exports to a file, and erases what is named", async () => {
    const exported = await program(["organization", "export", "default", "/tmp/a.tar", "--data", "/d"]);
    expect(exported.calls).toEqual([
      ["exportOrganization", { data: "/d" }, { name: "default", file: "/tmp/a.tar" }, exported.signal],
    ]);
    expect(exported.out).toBe("Exported default to /tmp/a.tar (13 kB). No secret is in it.\n");
    const erased = await program(["organization", "erase", "default"]);
    expect(erased.calls).toEqual([["eraseOrganization", {}, "default", erased.signal]]);
    expect(erased.out).toMatch(/^Erased default\. /u);
    const other = await program(["organization", "erase", "defualt"], {
      eraseOrganization: () => Promise.resolve(false),
    });
    expect(other.out).toMatch(/^There is no organization defualt; /u);
    expect((await program(["organization", "erase"])).code).toBe(2);
  });
});
