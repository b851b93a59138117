import { afterAll, beforeAll, expect, test } from "vitest";
import { callApi } from "../call.ts";
import { accessibilityProblems, scrollsSideways } from "./browser.ts";
import { openSite, type Site } from "./site.ts";

let site: Site;

beforeAll(async () => {
  site = await openSite();
});

afterAll(() => site?.close());

test("a session's page shows its answers: what waits, what was sent with its link, and why one was refused", async () => {
  const { id } = (await callApi(site.offstage.url, "/session/create", {
    prompt: "say hello",
    queueRightAway: false,
  })) as {
    id: string;
  };
  const page = await site.signedIn();
  await page.goto(`/sessions/${id}`);
  await page.getByRole("tab", { name: "Answers" }).click();
  await page.getByText("Nothing was written on a forge").waitFor();
  const action = JSON.stringify({ kind: "service", target: { service: "slack", channel: "C1", threadId: "1" } });
  await site.offstage.database.pool.query(
    `insert into answer (organization_id, session_id, key, action, text, host, status, url, problem, attempts, next_attempt_at)
     select organization_id, id, status.name, $2::jsonb, 'Offstage is done: ' || status.name, 'slack', status.name,
       case status.name when 'sent' then 'https://example.slack.com/archives/C1/p1' end,
       case status.name when 'refused' then 'Slack refused the reply: is_archived' end, 1, now() + interval '1 hour'
     from session, unnest(array['pending', 'sent', 'refused']) as status (name) where id = $1`,
    [id, action],
  );
  const row = (words: string) =>
    page.getByRole("list", { name: "Answers" }).getByRole("listitem").filter({ hasText: words });
  await row("Pending").getByText("next attempt").waitFor();
  expect(await row("Sent").getByRole("link", { name: "Show it" }).getAttribute("href")).toBe(
    "https://example.slack.com/archives/C1/p1",
  );
  await row("Refused").getByText("Slack refused the reply: is_archived").waitFor();
  expect(page.url()).toContain("tab=answers");
  expect(await accessibilityProblems(page)).toEqual([]);
  await page.setViewportSize({ width: 360, height: 800 });
  expect(await scrollsSideways(page)).toBe(false);
});
