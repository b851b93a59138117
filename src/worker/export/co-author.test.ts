import { expect, test } from "vitest";
import { coAuthorTrailer } from "./co-author.ts";

const ada = "ada@example.com";

test.each([
  ["Ada Lovelace", "Ada Lovelace"],
  ["Ада 👩🏽‍🚀 O'Neil, 3rd", "Ада 👩🏽‍🚀 O'Neil, 3rd"],
  ["Ada\r\nSigned-off-by: Bob <bob@example.com>\u2028x\u0085y", "Ada Signed-off-by: Bob bob@example.com x y"],
  ["<Ada>\u001B[2J \u202Eecalevol\t", "Ada [2J ecalevol"],
  ["", "ada"],
  [" \n<>", "ada"],
  ["A".repeat(300), "A".repeat(300)],
])("the name %j is one line of its own in a commit", (name, shown) => {
  expect(coAuthorTrailer({ name, email: ada })).toBe(`\n\nCo-authored-by: ${shown} <${ada}>`);
});

test.each(["", "ada", "a@b>\nCo-authored-by: Bob <bob@example.com", "a b@example.com", "a@example.com\r"])(
  "nobody is named by the address %j",
  (email) => {
    expect(coAuthorTrailer({ name: "Ada", email })).toBe("");
  },
);

test("nobody is named if nobody asked", () => {
  expect(coAuthorTrailer(null)).toBe("");
});
