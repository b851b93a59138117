import { describe, expect, it } from "vitest";
import { findMention } from "../../domain/conversations/mention.ts";
import { withNameOf } from "./azure-mentions.ts";

const id = "0198c1f0-0000-4000-8000-00000000000a";
const said = (body: string, account: { readonly id: string; readonly name: string } | null): string => {
  const commented = { name: "pullRequest.commented", contentKey: null, subject: null, event: { comment: { body } } };
  return (withNameOf(commented, account).event as { readonly comment: { readonly body: string } }).comment.body;
};

describe("who is picked in Azure DevOps' editor", () => {
  it("becomes a mention by name if it is the connection's own account", () => {
    expect(said(`@<${id.toUpperCase()}> !fix it`, { id, name: "offstage" })).toBe("@offstage !fix it");
    const calls = (name: string) => findMention(said(`@<${id}> look`, { id, name }), "offstage") !== null;
    expect(["Offstage Bot", "offstage", "Ann", "Not offstage"].map(calls)).toEqual([true, true, false, false]);
  });
  it("stays an id if it is another account's, if the account is unknown, or if the name is more than a name", () => {
    const body = `@<${id}> look`;
    expect(said(body, null)).toBe(body);
    expect(said(body, { id: id.replace("a", "b"), name: "offstage" })).toBe(body);
    for (const name of ["a @offstage", "a\n/offstage !fix", "`offstage", "", " offstage"])
      expect(said(body, { id, name })).toBe(body);
  });
  it("takes no longer for what is made to take long", () => {
    for (const part of ["@<", "@<0", `@<${id}`, `@<${id}>`])
      expect(said(part.repeat(65_000 / part.length), { id, name: "offstage" })).not.toBe("");
  });
});
