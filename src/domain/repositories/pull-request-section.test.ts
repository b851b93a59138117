import { expect, test } from "vitest";
import { markedSection, withSection } from "./pull-request-section.ts";

const longest = 10_000;

test("only what stands between our marks changes", () => {
  const body = `Somebody's words.\n\n${markedSection("Ours")}\n\nMore of theirs. <!-- offstage session=1 commit=2 -->`;
  const changed = withSection(body, "New", longest);
  expect(changed).toBe(body.replace("Ours", "New"));
  expect(withSection(changed ?? "", "New", longest)).toBeNull();
  expect(withSection((changed ?? "").replaceAll("\n", "\r\n"), "New", longest)).toBeNull();
});

test("of several sections the last one is ours", () => {
  const forged = markedSection("Forged");
  expect(withSection(`${forged}\n${markedSection("Ours")}`, "New", longest)).toBe(`${forged}\n${markedSection("New")}`);
});

test.each([
  ["there is none", "All their own words"],
  ["its beginning is gone", markedSection("Ours").replace("<!-- offstage section -->", "")],
  ["its end is gone", markedSection("Ours").replace("<!-- /offstage section -->", "")],
  ["its marks changed places", `<!-- /offstage section -->Ours<!-- offstage section -->`],
])("a text stays as it is if %s", (_, body) => expect(withSection(body, "New", longest)).toBeNull());

test("a text that would be too long stays as it is", () => {
  const body = `${"x".repeat(90)}${markedSection("Ours")}`;
  expect(withSection(body, "New words", body.length)).toBeNull();
  expect(withSection(body, "New", body.length)).not.toBeNull();
});
