import { afterEach, expect, test } from "vitest";
import { openDatabase, type Database } from "../../src/database/database.ts";
import { createLogger } from "../../src/observability.ts";
import { createTestDatabase } from "../database.ts";
import { waitFor } from "../wait-for.ts";

const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** Two processes, as far as the database can tell. */
async function twoNodes(): Promise<[Database, Database]> {
  const first = await createTestDatabase();
  closing.push(first.close);
  const second = await openDatabase({ url: first.url, directory: "", logger: createLogger("error") });
  closing.push(second.close);
  return [first.database, second];
}

test("a word is heard once by every process, by the one that says it too", async () => {
  const [speaker, other] = await twoNodes();
  const heardBySpeaker: string[] = [];
  const heardByOther: string[] = [];
  await speaker.listen("channel", (word) => heardBySpeaker.push(word));
  await other.listen("channel", (word) => heardByOther.push(word));
  speaker.notify("channel", "mine");
  await waitFor(() => heardByOther.includes("mine"), "the other hears it");
  // What the first said comes back over its connection before this, if it comes back at all.
  other.notify("channel", "yours");
  await waitFor(() => heardBySpeaker.includes("yours"), "the speaker hears the other");
  expect(heardBySpeaker).toEqual(["mine", "yours"]);
  expect(heardByOther).toEqual(["mine", "yours"]);
});

test("a process that listens to nothing itself is heard", async () => {
  const [speaker, other] = await twoNodes();
  const heard: string[] = [];
  await other.listen("channel", (word) => heard.push(word));
  speaker.notify("channel", "mine");
  await waitFor(() => heard.length > 0, "the other hears it");
  expect(heard).toEqual(["mine"]);
});

test("who lost its connection is told to look itself, and hears what is said afterwards", async () => {
  const [speaker, other] = await twoNodes();
  const heard: string[] = [];
  await other.listen("channel", (word) => heard.push(word));
  const { rowCount } = await speaker.pool.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query like 'listen %'",
  );
  expect(rowCount).toBe(1);
  await waitFor(() => heard.includes(""), "it is told to look");
  speaker.notify("channel", "after");
  await waitFor(() => heard.includes("after"), "it hears again");
});
