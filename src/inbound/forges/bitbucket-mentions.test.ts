import { describe, expect, it } from "vitest";
import { findMention } from "../../domain/conversations/mention.ts";
import { withNamesOf } from "./bitbucket-mentions.ts";

const id = "712020:1a2b-3c4d";
const shown = (name: string, of = id) =>
  `<p><span class="ap-mention" data-atlassian-id="${of}">${name}</span> look</p>`;

describe("who is mentioned in Bitbucket's editor", () => {
  it("becomes a mention by name, as if the name were written", () => {
    expect(withNamesOf(`@{${id}} look`, shown("@offstage"))).toBe("@offstage look");
    expect(findMention(withNamesOf(`@{${id}} !fix it`, shown("@Offstage")), "offstage")).toEqual({ macro: "fix" });
    expect(findMention(withNamesOf(`@{${id}} look`, shown("@Offstage Bot")), "offstage")).not.toBeNull();
    expect(findMention(withNamesOf(`@{${id}} look`, shown("@Ann")), "offstage")).toBeNull();
  });
  it("stays an id if the text that is shown has no name, or another's", () => {
    for (const html of [
      "",
      "<p>@offstage</p>",
      shown("@offstage", "other"),
      '<span class="ap-mention">@offstage</span>',
    ])
      expect(withNamesOf(`@{${id}} look`, html)).toBe(`@{${id}} look`);
  });
  it("says nothing by a name that its owner chose for that", () => {
    for (const name of [
      "@a\n/offstage !fix",
      "@a @offstage",
      "@a /offstage",
      "@`offstage",
      "offstage",
      "@[offstage](x)",
    ])
      expect(withNamesOf(`@{${id}} look`, shown(name))).toBe(`@{${id}} look`);
  });
  it("takes no longer for what is made to take long", () => {
    for (const part of ["<span class='ap-mention' data-atlassian-id='a'>", "@{", "@{a}", "<"])
      expect(typeof withNamesOf(`@{${part.repeat(65_000 / part.length)}`, part.repeat(65_000 / part.length))).toBe(
        "string",
      );
  });
});
