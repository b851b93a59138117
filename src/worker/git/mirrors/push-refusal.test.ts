import { expect, test } from "vitest";
import { lfsError } from "../lfs/error.ts";
import { isBranchMoved, pushError } from "./push-refusal.ts";

const ref = "0123456789012345678901234567890123456789:refs/heads/work";
const refused = (status: string): string => `To https://git.example/acme/app\n!\t${ref}\t${status}\nDone\n`;
const failureOf = (stdout: string, stderr = "") =>
  pushError({ url: "https://git.example/acme/app", branch: "work", stdout, stderr });

test("a refusal has git's own reason, and the server's words after it", () => {
  // As GitHub answers a token without the scope, and a protected branch.
  const scope =
    "refusing to allow a Personal Access Token to create or update workflow `.github/workflows/ci.yml` without `workflow` scope";
  expect(failureOf(refused(`[remote rejected] (${scope})`)).failure).toMatchObject({
    code: "push_rejected",
    reason: `The server rejected the push of work: ${scope}`,
    retryable: false,
  });
  const words = [
    "remote: error: GH006: Protected branch update failed for refs/heads/work.\u001b[K",
    "remote: ",
    "remote: - Changes must be made through a pull request.        ",
  ].join("\n");
  expect(failureOf(refused("[remote rejected] (protected branch hook declined)"), words).message).toBe(
    "The server rejected the push of work: protected branch hook declined: error: GH006: Protected branch update failed for refs/heads/work. - Changes must be made through a pull request.",
  );
});

test("progress, colours and banners are no words of a refusal", () => {
  const stderr = [
    "Enumerating objects: 5, done.",
    "Writing objects: 100% (3/3), 300 bytes | 300.00 KiB/s, done.",
    "Total 3 (delta 1), reused 0 (delta 0), pack-reused 0",
    "remote: Resolving deltas:   0% (0/1)\u001b[K\rremote: Resolving deltas: 100% (1/1), completed with 1 local object.\u001b[K",
    "remote: Processing changes: refs: 1, done",
    "remote: . Processing 1 references",
    "remote: Processed 1 references in total",
    "remote: ========================================================================",
    "remote: \u001b[1;31mGitLab: You are not allowed to push code to this project.\u001b[0m",
    "error: failed to push some refs to 'https://git.example/acme/app'",
  ].join("\n");
  expect(failureOf(refused("[remote rejected] (pre-receive hook declined)"), stderr).message).toBe(
    "The server rejected the push of work: pre-receive hook declined: GitLab: You are not allowed to push code to this project.",
  );
});

test("a push to a repository that was made anew with another object format is not tried again", () => {
  const said =
    "fatal: the receiving end does not support this repository's hash algorithm\nfatal: the remote end hung up unexpectedly\n";
  expect(failureOf("", said).failure).toMatchObject({ code: "repository_unreachable", passing: false });
  expect(failureOf("", said).message).toContain("made anew with another object format");
});

// As GitLab answers (lib/gitlab/checks/diff_check.rb, and Premium's locks of paths).
test.each(["is locked in Git LFS by Jane Doe", "is locked by Jane Doe"])(
  "a push of a file that %s is final, and names the lock",
  (words) => {
    const { failure } = failureOf(
      refused("[remote rejected] (pre-receive hook declined)"),
      `remote: GitLab: The path 'art/logo.psd' ${words}\nerror: failed to push some refs to 'https://git.example/acme/app'\n`,
    );
    expect(failure).toMatchObject({ code: "push_rejected", retryable: false, passing: false });
    expect(failure.reason).toContain(`The path 'art/logo.psd' ${words}`);
    expect(failure.remedy).toContain("git lfs unlock");
  },
);

// As GitHub answers: https://docs.github.com/en/code-security/secret-scanning/working-with-secret-scanning-and-push-protection.
test("a push that GitHub's push protection refuses says which secret is where, and that the commits are to be made anew", () => {
  const words = [
    "remote: error: GH013: Repository rule violations found for refs/heads/work.",
    "remote: ",
    "remote: - GITHUB PUSH PROTECTION",
    `remote:   ${"—".repeat(41)}`,
    "remote:     Resolve the following violations before pushing again",
    "remote: ",
    "remote:     - Push cannot contain secrets",
    "remote: ",
    "remote:      (?) Learn how to resolve a blocked push",
    "remote:      https://docs.github.com/code-security/secret-scanning/working-with-secret-scanning-and-push-protection/working-with-push-protection-from-the-command-line#resolving-a-blocked-push",
    "remote: ",
    `remote:       —— Amazon AWS Access Key ID ${"—".repeat(26)}`,
    "remote:        locations:",
    "remote:          - commit: 8728dbe67",
    "remote:            path: README.md:4",
    "remote: ",
    "remote:        (?) To push, remove secret from commit(s) or follow this URL to allow the secret.",
    "remote:        https://github.com/acme/app/security/secret-scanning/unblock-secret/2sFRj",
  ].join("\n");
  const { failure } = failureOf(refused("[remote rejected] (push declined due to repository rule violations)"), words);
  expect(failure).toMatchObject({ code: "push_rejected", passing: false });
  expect(failure.reason).toContain(
    "- Push cannot contain secrets (?) Learn how to resolve a blocked push https://docs.github.com/",
  );
  expect(failure.reason).toContain(
    "Amazon AWS Access Key ID locations: - commit: 8728dbe67 path: README.md:4 (?) To push, remove secret",
  );
  expect(failure.reason).toContain("/unblock-secret/2sFRj");
  expect(failure.reason).not.toContain("—");
  expect(failure.remedy).toMatch(/commits anew without the secret/u);
});

test.each([
  "remote: error: File big.bin is 120.00 MB; this exceeds GitHub's file size limit of 100.00 MB",
  "remote: error: GH001: Large files detected. You may want to try Git Large File Storage - https://git-lfs.github.com.",
  "remote: fatal: pack has a file that is larger than the maximum of 50 MB",
])("a file that is too large for the server is the agent's to take out: %s", (line) => {
  const { failure } = failureOf(refused("[remote rejected] (pre-receive hook declined)"), line);
  expect(failure).toMatchObject({ code: "push_rejected", passing: false });
  expect(failure.remedy).toMatch(/without the large file/u);
});

test("a refusal is bounded, whatever the server says", () => {
  const stderr = `remote: ${"word ".repeat(10_000)}`;
  const { message } = failureOf(refused("[remote rejected] (pre-receive hook declined)"), stderr);
  expect(message.length).toBeLessThanOrEqual(1_000);
  expect(message).toMatch(/word$/u);
});

test("a server in trouble is tried again, a refusal is not", () => {
  for (const reason of ["Internal Server Error", "failure", "cannot lock ref 'refs/heads/work'", "timed out"])
    expect(failureOf(refused(`[remote rejected] (${reason})`)).retryable).toBe(true);
  expect(failureOf(refused("[remote rejected] (deny updating a hidden ref)")).retryable).toBe(false);
  const answer = "error: RPC failed; HTTP 503 curl 22 The requested URL returned error: 503";
  expect(failureOf("", answer).failure).toMatchObject({ code: "repository_unreachable", retryable: true });
});

test("a branch that moved meanwhile is not reported as a refusal", () => {
  for (const status of [
    "[rejected] (fetch first)",
    "[rejected] (non-fast-forward)",
    "[remote rejected] (cannot lock ref 'refs/heads/work': is at 1 but expected 2)",
  ])
    expect(isBranchMoved(refused(status))).toBe(true);
  // A hook may print anything.
  expect(isBranchMoved(refused("[remote rejected] (pre-receive hook declined)"))).toBe(false);
  expect(isBranchMoved(`To x\n \t${ref}\tnon-fast-forward\nDone`)).toBe(false);
});

test.each([
  "remote: Gitea: Internal Server Connection Error",
  "remote: GitLab: Internal API unreachable",
  "remote: error: connection refused by the hook's service",
  "remote: The repository is temporarily read-only. Please try again later.",
  "remote: GitLab: The service is temporarily unavailable",
  "remote: This server is under maintenance",
])("a hook whose own server is in trouble passes: %s", (line) => {
  const stdout = "To x\n!\tabc:refs/heads/work\t[remote rejected] (pre-receive hook declined)\nDone\n";
  expect(pushError({ url: "https://git.example/a/b", branch: "work", stdout, stderr: `${line}\n` })).toMatchObject({
    code: "push_rejected",
    passing: true,
  });
});

test.each([
  "remote: error: you have to fix the lint errors, then try again",
  "remote: This repository was archived so it is read-only.",
  "remote: temporary files are not allowed: a.tmp",
])("a hook that refuses the work does not pass: %s", (line) => {
  const stdout = "To x\n!\tabc:refs/heads/work\t[remote rejected] (pre-receive hook declined)\nDone\n";
  expect(pushError({ url: "https://git.example/a/b", branch: "work", stdout, stderr: `${line}\n` }).passing).toBe(
    false,
  );
});

// As git 2.39 says to a push into a full disk, and with receive.maxInputSize and receive.fsckObjects.
test.each([
  ["remote: fatal: unable to create temporary file: No space left on device", true],
  ["remote: fatal: write error: No space left on device", true],
  ["error: remote unpack failed: unable to create temporary object directory", true],
  ["remote: fatal: pack exceeds maximum allowed size", false],
  ["remote: fatal: fsck error in packed object", false],
])("a pack that the server could not store passes, one that it did not want does not: %s", (line, passing) => {
  const failure = failureOf(refused("[remote rejected] (unpacker error)"), `${line}\n`);
  expect(failure).toMatchObject({ code: "push_rejected", passing });
});

test.each([
  "remote: You have exceeded a secondary rate limit. Please wait a few minutes before you try again.\nfatal: unable to access 'https://git.example/a/b/': The requested URL returned error: 403\n",
  "fatal: remote error: Too many requests\n",
  "fatal: unable to access 'https://git.example/a/b/': The requested URL returned error: 429\n",
  "error: RPC failed; HTTP 408 curl 22 The requested URL returned error: 408\n",
])("a server that was asked too often is asked again: %s", (stderr) => {
  const failure = { code: "repository_unreachable", passing: true };
  expect(pushError({ url: "https://git.example/a/b", branch: "work", stdout: "", stderr })).toMatchObject(failure);
});

const overSsh = (words: string) =>
  pushError({
    url: "ssh://git@git.example/a/b",
    branch: "work",
    stdout: "",
    stderr: `${words}\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n`,
  });

test.each([
  "ERROR: The key you are authenticating with has been marked as read only.",
  "ERROR: You are not allowed to push code to this project.",
  "FATAL: W any a/b deploy DENIED by fallthru",
  "remote: ERROR: This deploy key does not have write access to this project.",
])("a server over ssh that refuses in words does so for good: %s", (words) => {
  const failure = {
    code: "repository_access_denied",
    passing: false,
    message: expect.stringContaining(words.slice(-20)) as string,
  };
  expect(overSsh(words)).toMatchObject(failure);
});

test.each([
  "ssh: connect to host git.example port 22: Connection refused",
  "Connection closed by 192.0.2.1 port 22",
  "ERROR: The repository is temporarily read-only. Please try again later.",
  "kex_exchange_identification: read: Connection reset by peer",
])("a server over ssh that can't be reached now is asked again: %s", (words) => {
  expect(overSsh(words)).toMatchObject({ code: "repository_unreachable", passing: true });
});

test("a repository that is called like a rate limit refuses as any other", () => {
  const stderr = "fatal: unable to access 'https://git.example/a/rate limit/': The requested URL returned error: 403\n";
  expect(pushError({ url: "https://git.example/a/rate limit", branch: "work", stdout: "", stderr })).toMatchObject({
    code: "repository_access_denied",
    passing: false,
  });
});

test("a host whose certificate is not trusted is no matter of time", () => {
  const stderr =
    "fatal: unable to access 'https://git.example/a/b/': SSL certificate problem: self-signed certificate\n";
  const failure = { code: "repository_unreachable", retryable: true, passing: false };
  expect(pushError({ url: "https://git.example/a/b", branch: "work", stdout: "", stderr })).toMatchObject(failure);
});

test.each([
  "fatal: unable to access 'https://git.example/acme/certificate-store.git/': Could not resolve host: git.example\n",
  "fatal: unable to access 'https://git.example/acme/certificates/': The requested URL returned error: 503\n",
  "fatal: unable to access 'https://certificates.example/a/b/': Failed to connect to certificates.example port 443\n",
  "remote: Internal error: object 0123 does not exist yet, try again\nfatal: the remote end hung up unexpectedly\n",
])("an outage passes whatever the repository is called, and whatever else the server misses: %s", (stderr) => {
  const failure = { code: "repository_unreachable", passing: true };
  expect(pushError({ url: "https://git.example/a/b", branch: "work", stdout: "", stderr })).toMatchObject(failure);
});

test.each([
  "remote: Repository not found.\nfatal: repository 'https://git.example/a/b/' not found\n",
  "fatal: repository 'https://git.example/a/b/' not found\n",
  "ERROR: Repository not found.\nfatal: Could not read from remote repository.\n",
  "remote: ERROR: The project you were looking for could not be found or you don't have permission to view it.\nfatal: Could not read from remote repository.\n",
  "fatal: '/srv/a/b' does not appear to be a git repository\nfatal: Could not read from remote repository.\n",
])("a repository that does not exist is reported as such: %s", (stderr) => {
  const failure = { code: "repository_not_found", passing: false };
  expect(pushError({ url: "https://git.example/a/b", branch: "work", stdout: "", stderr })).toMatchObject(failure);
});

test("a server of LFS that refuses does so for good, whatever the repository is called", () => {
  const said = "batch response: Forbidden: https://git.example/acme/rate-limiter.git/info/lfs/objects/batch\n";
  const url = "https://git.example/acme/rate-limiter";
  expect(lfsError(url, "fetched from", said).passing).toBe(false);
  expect(lfsError(url, "fetched from", `${said}rate limit exceeded\n`).passing).toBe(true);
});

test.each([
  ["CONNECT tunnel failed, response 403", false, /answered 403/u],
  ["Received HTTP code 403 from proxy after CONNECT", false, /answered 403/u],
  ["CONNECT tunnel failed, response 407", false, /answered 407/u],
  ["CONNECT tunnel failed, response 502", true, /response 502/u],
])("what a proxy refuses it refuses for good, what it can't reach passes: %s", (words, passing, message) => {
  const stderr = `fatal: unable to access 'https://git.example/a/b/': ${words}\n`;
  const failure = {
    code: "repository_unreachable",
    retryable: true,
    passing,
    message: expect.stringMatching(message) as string,
  };
  expect(pushError({ url: "https://git.example/a/b", branch: "work", stdout: "", stderr })).toMatchObject(failure);
});

test("a push that is too large for the server is refused for good, with the server's status", () => {
  const stderr =
    "error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413\nfatal: the remote end hung up\n";
  expect(pushError({ url: "https://git.example/a/b", branch: "work", stdout: "", stderr })).toMatchObject({
    code: "push_rejected",
    passing: false,
    message: expect.stringContaining("413") as string,
  });
});

// 410 as of a repository that was taken away, 411 as of a proxy that takes no chunks, 451 as of one that may not be shown.
test.each([
  [402, false],
  [410, false],
  [411, false],
  [431, false],
  [451, false],
  [408, true],
  [409, true],
  [423, true],
  [429, true],
])("a server that answers %i refuses for good, or for now", (status, passing) => {
  const stderr = `error: RPC failed; HTTP ${status} curl 22 The requested URL returned error: ${status}\nfatal: the remote end hung up\n`;
  expect(pushError({ url: "https://git.example/a/b", branch: "work", stdout: "", stderr })).toMatchObject({
    passing,
    message: expect.stringContaining(String(status)) as string,
  });
});

test("a branch in the way of another is no matter of time", () => {
  const words = "cannot lock ref 'refs/heads/fix/a': 'refs/heads/fix/a/b' exists; cannot create 'refs/heads/fix/a'";
  const stderr = `remote: error: ${words}        \n`;
  const failure = { code: "push_rejected", passing: false, remedy: expect.stringContaining("in the way") as string };
  expect(failureOf(refused("[remote rejected] (failed to update ref)"), stderr)).toMatchObject(failure);
  expect(failureOf(refused("[remote rejected] (failed to update ref)")).passing).toBe(true);
});
