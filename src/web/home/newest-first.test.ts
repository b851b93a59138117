import { expect, it } from "vitest";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { withNewest, type Read } from "./newest-first.ts";

/** Sessions by their numbers: the greater, the newer. */
function read(numbers: readonly number[], next: string | null): Read {
  const sessions = numbers.map((number) => ({
    id: String(number),
    createdAt: new Date(number * 1_000).toISOString(),
  }));
  return { sessions: sessions as SessionDetail[], next };
}

const numbersOf = ({ sessions }: Read): number[] => sessions.map(({ id }) => Number(id));

it("keeps older pages below a newest page that goes on", () => {
  const known = read([9, 8, 7, 6, 5], "after 5");
  const shown = withNewest(known, read([11, 10, 9, 8], "after 8"));
  expect(numbersOf(shown)).toEqual([11, 10, 9, 8, 7, 6, 5]);
  expect(shown.next).toBe("after 5");
});

it("lets go what is no longer in the newest page, and what follows it if nothing does any more", () => {
  expect(numbersOf(withNewest(read([9, 8, 7, 6], "after 6"), read([9, 7], "after 7")))).toEqual([9, 7, 6]);
  expect(numbersOf(withNewest(read([9, 8, 7, 6], "after 6"), read([9, 8], null)))).toEqual([9, 8]);
});

it("begins anew if so much came that the newest page does not reach what is known", () => {
  const shown = withNewest(read([3, 2, 1], "after 1"), read([9, 8, 7], "after 7"));
  expect(numbersOf(shown)).toEqual([9, 8, 7]);
  expect(shown.next).toBe("after 7");
});

it("is the newest page if nothing is known, and keeps its own end if nothing older is", () => {
  expect(withNewest(undefined, read([2, 1], "after 1")).next).toBe("after 1");
  expect(withNewest(read([2, 1], "after 1"), read([2, 1], "after 1")).next).toBe("after 1");
});
