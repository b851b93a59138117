import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { idScopesOf } from "../../src/domain/answers/answer.ts";
import { withCommentMark } from "../../src/domain/repositories/comment-mark.ts";
import { isOwnComment, queueAnswer, type AnswerAction, type NewAnswer } from "../../src/store/answers/answers.ts";
import { createRepository } from "../../src/store/repositories/repositories.ts";
import { deleteSession } from "../../src/store/sessions/delete-session.ts";
import { cancelSession } from "../../src/store/sessions/sessions.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, addSession, atOnce } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let organizationId: string;
let repositoryId: string;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
});
afterAll(() => testDatabase.close());
beforeEach(async () => {
  organizationId = await addOrganization(database);
  repositoryId = await connect("shop");
});

async function connect(name: string): Promise<string> {
  const key = `forge.example:8443/acme/${name}`;
  const repository = { url: `https://${key}`, key, name, branch: null, description: null };
  return (await createRepository(database, organizationId, repository)).id;
}

const subject = { kind: "issue", number: 7 } as const;
const queue = (changes: Partial<NewAnswer> = {}) =>
  queueAnswer(database.pool, {
    organizationId,
    sessionId: null,
    repositoryId,
    key: crypto.randomUUID(),
    action: { kind: "comment", subject },
    text: "Done.",
    ...changes,
  });

async function answers() {
  const { rows } = await database.pool.query<Record<string, unknown> & { id: string }>(
    "select * from answer where organization_id = $1 order by number",
    [organizationId],
  );
  return rows;
}

describe("queueing", () => {
  it("happens once for an organization and key, however many ask at once", async () => {
    const other = await addOrganization(database);
    await atOnce(8, (n) => queue({ key: "event 1", text: `answer ${n}` }));
    const before = await answers();
    await queue({ key: "event 1", text: "another" });
    expect(await answers()).toEqual(before);
    expect(before).toMatchObject([{ status: "pending", attempts: 0, host: "forge.example:8443" }]);
    expect(before[0]?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/u);
    const action = { kind: "service", target: { service: "linear", issueId: "1" }, triggerId: "t" } as const;
    await queue({ organizationId: other, repositoryId: null, key: "event 1", action });
    expect(await answers()).toEqual(before);
  });

  it("goes with the caller's transaction", async () => {
    await database
      .transaction(async (transaction) => {
        await queueAnswer(transaction, {
          organizationId,
          sessionId: null,
          repositoryId,
          key: "1",
          action: { kind: "comment", subject },
          text: "",
        });
        throw new Error("rolled back");
      })
      .catch(() => undefined);
    expect(await answers()).toEqual([]);
  });

  it("stores any text, and cuts one that no forge would take", async () => {
    await queue({ text: `a\0b\uD800 ${"x".repeat(100_000)} end` });
    const [{ text }] = (await answers()) as unknown as [{ text: string }];
    expect(text).toMatch(/^a\u2400b\uFFFD x+\n\[… \d+ characters left out …\]\nx+ end$/u);
    expect(text.length).toBeLessThan(61_000);
  });

  it("refuses a key that is too long to be unique, and a forge's answer without a repository", async () => {
    await expect(queue({ key: "x".repeat(501) })).rejects.toThrow(RangeError);
    await expect(queue({ repositoryId: null })).rejects.toThrow(RangeError);
    await queue({ key: "\u{1F600}".repeat(250) });
    expect(await answers()).toHaveLength(1);
  });

  it("keeps no session of another organization", async () => {
    const other = await addOrganization(database);
    const { id } = await addSession(database, other);
    await queue({ sessionId: id });
    expect(await answers()).toMatchObject([{ session_id: null }]);
  });
});

describe("our own comments", () => {
  const seen = (commentId: string, changes: Partial<Parameters<typeof isOwnComment>[1]> = {}) =>
    isOwnComment(database.pool, { organizationId, repositoryId, commentId, body: "Words.", ...changes });
  const record = (commentId: string, scope: string | null, action?: AnswerAction) =>
    queue({ ...(action !== undefined && { action }) }).then(() =>
      database.pool.query(
        `update answer set status = 'sent', external_id = $2, id_scope = $3
         where number = (select max(number) from answer where organization_id = $1)`,
        [organizationId, commentId, scope],
      ),
    );

  it("are known by their recorded ids, in their repository and organization only", async () => {
    await record("17", null);
    expect(await seen("17")).toBe(true);
    expect(await seen("18")).toBe(false);
    expect(await seen("17", { repositoryId: await connect("other") })).toBe(false);
    expect(await seen("17", { organizationId: await addOrganization(database) })).toBe(false);
  });

  it("stay known if two rows of one repository were merged", async () => {
    await record("17", null);
    const kept = await connect("Shop");
    await database.pool.query("update repository set deleted_at = now() where id = $1", [repositoryId]);
    await database.pool.query(
      "update repository set address_key = (select address_key from repository where id = $2) where id = $1",
      [kept, repositoryId],
    );
    expect(await seen("17", { repositoryId: kept })).toBe(true);
  });

  it("are known by their mark before the id is recorded, if the mark is their last line", async () => {
    await queue();
    const [{ id }] = (await answers()) as [{ id: string }];
    const body = withCommentMark("Done.", id);
    expect(await seen("99", { body })).toBe(true);
    expect(await seen("99", { body: `${body}\r\n` })).toBe(true);
    expect(await seen("99", { body: body.replaceAll(/^/gmu, "> ") })).toBe(false);
    expect(await seen("99", { body: `${body}\nThat is not what I asked for.` })).toBe(false);
    expect(await seen("99", { body: withCommentMark("Done.", crypto.randomUUID()) })).toBe(false);
    expect(await seen("99", { body: "<!-- offstage comment=no-key -->" })).toBe(false);
    expect(await seen("99", { body, organizationId: await addOrganization(database) })).toBe(true);
  });

  it("are not taken for others' that GitHub counts apart, or that are in another thread", async () => {
    await record("17", "lines");
    await record("1", "thread 5");
    const inConversation = idScopesOf("pullRequest", { path: null, threadId: null });
    const onLines = idScopesOf("pullRequest", { path: "a.ts", threadId: "4" });
    expect(await seen("17", { idScopes: inConversation })).toBe(false);
    expect(await seen("17", { idScopes: onLines })).toBe(true);
    expect(await seen("17")).toBe(true);
    expect(await seen("1", { idScopes: onLines })).toBe(false);
    expect(await seen("1", { idScopes: idScopesOf("pullRequest", { path: null, threadId: "5" }) })).toBe(true);
    expect(await seen("1")).toBe(false);
  });

  it("stay known when their session is deleted, without what was said", async () => {
    const { id } = await addSession(database, organizationId);
    await queue({ sessionId: id });
    await database.pool.query("update answer set status = 'sent', external_id = '17' where session_id = $1", [id]);
    await queue({ sessionId: id });
    await cancelSession(database, organizationId, id);
    await deleteSession(database, organizationId, id);
    expect(await answers()).toMatchObject([
      { session_id: null, text: "", status: "sent" },
      { session_id: null, text: "", status: "dead" },
    ]);
    expect(await seen("17")).toBe(true);
  });
});
